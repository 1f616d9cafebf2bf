"""Administrators' own code, written for KubeSpawner, works as it does there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fixtures.cluster import AddNodes
from tests.hub.configurations import T4, t4_nodes
from tests.hub.conftest import StartGPUHub
from tests.hub.kept import LendHub
from tests.hub.running import RunningHub

pytestmark = pytest.mark.each_hub

# Instead of the last line, which `start_gpu_hub` adds.
STOCK = """
gpuspawner.configure = lambda c: None
c.JupyterHub.spawner_class = "kubespawner.KubeSpawner"
"""

# What KubeSpawner makes models of, and what it leaves as it is written.
HOOK_THAT_LOOKS = """
import json
c.KubeSpawner.volumes = [{"name": "home", "nfs": {"server": "nfs", "path": "/{username}"}}]
c.KubeSpawner.volume_mounts = [{"name": "home", "mountPath": "/home/jovyan"}]
c.KubeSpawner.environment = {
    "NODE": {"valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}, "TEAM": "physics"}
c.KubeSpawner.pod_security_context = {"fsGroupChangePolicy": "OnRootMismatch"}
c.KubeSpawner.container_security_context = {"capabilities": {"drop": ["ALL"]}}
c.KubeSpawner.tolerations = [{"key": "hub", "operator": "Exists"}]
PREFERRED = {"weight": 1, "preference": {"matchExpressions": [{"key": "x", "operator": "Exists"}]}}
c.KubeSpawner.extra_pod_config = {
    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [PREFERRED]}},
    "dnsConfig": {"options": [{"name": "ndots", "value": "2"}]},
}
c.KubeSpawner.extra_container_config = {"startupProbe": {"exec": {"command": ["true"]}}}
c.KubeSpawner.init_containers = [
    {"name": "first", "image": "first:1", "env": [{"name": "A", "value": "b"}]}]

def named(parts):
    # The items of a list by their names, or else by their numbers.
    read = dict.get if parts and isinstance(parts[0], dict) else getattr
    return {read(it, "name", n): it for n, it in enumerate(parts)}

def kinds(path, it):
    # The types of all parts of a pod, by where they are.
    yield path, type(it).__name__
    if hasattr(it, "attribute_map"):
        it = {name: getattr(it, name) for name in it.attribute_map}
    elif isinstance(it, list):
        it = named(it) if it and not isinstance(it[0], str) else {}
    for name, part in it.items() if isinstance(it, dict) else ():
        yield from kinds(f"{path}.{name}", part)

def look(spawner, pod):
    [server], spec = pod.spec.containers, pod.spec
    assert spec.volumes[0].nfs["server"] == "nfs"
    assert named(server.env)["NODE"].value_from["fieldRef"]["fieldPath"] == "spec.nodeName"
    assert spec.affinity.get("nodeAffinity")["preferredDuringSchedulingIgnoredDuringExecution"]
    assert spec.security_context["fsGroupChangePolicy"] == "OnRootMismatch"
    assert server.security_context.get("capabilities") == {"drop": ["ALL"]}
    assert server.startup_probe["exec"]["command"] == ["true"]
    assert spec.init_containers[0].env[0]["name"] == "A"
    pod.metadata.annotations["kinds"] = json.dumps(dict(kinds("pod", pod)))
    return pod
c.KubeSpawner.modify_pod_hook = look

# The class whose own methods stand between KubeSpawner and the API server.
from kubespawner import KubeSpawner
class Looking(KubeSpawner):
    async def get_pod_manifest(self):
        return look(self, await super().get_pod_manifest())
    async def _make_create_pod_request(self, pod, request_timeout):
        return await super()._make_create_pod_request(look(self, pod), request_timeout)
"""
ENDED_BY_POLICIES = """
c.GPUSpawner.policies = {"all": {"lifetime": "1h"}}
c.JupyterHub.spawner_class = Looking
"""


def kinds(hub: RunningHub, user: str, options: object = None) -> dict[str, str]:
    """Start a server; return the types that the last look has found in its pod."""
    hub.start_until_ready(user, options)
    found: dict[str, str] = json.loads(hub.pods.of(user)["metadata"]["annotations"]["kinds"])
    return found


@pytest.fixture
def with_stock(start_gpu_hub: StartGPUHub, add_nodes: AddNodes) -> dict[str, str]:
    """What the hook finds in a hub without gpuspawner."""
    add_nodes(t4_nodes(1, 2))
    with start_gpu_hub(HOOK_THAT_LOOKS + STOCK) as hub:
        return kinds(hub, "ann")


def differences(before: dict[str, str], now: dict[str, str]) -> dict[str, Any]:
    return {path: (kind, now.get(path)) for path, kind in before.items() if now.get(path) != kind}


# What a start writes: that a crash leaves its last words, and where the server may run.
POLICY = "termination_message_policy"
SAYS_WHY = {
    f"pod.spec.containers.notebook.{POLICY}": ("NoneType", "str"),
    f"pod.spec.init_containers.first.{POLICY}": ("NoneType", "str"),
}


def test_a_hook_gets_what_kubespawner_gives_it(
    with_stock: dict[str, str], kept_hub: LendHub
) -> None:
    hub = kept_hub(HOOK_THAT_LOOKS)

    assert differences(with_stock, kinds(hub, "ann")) == SAYS_WHY


def test_a_hook_gets_what_kubespawner_gives_it_beside_what_was_granted(
    with_stock: dict[str, str], kept_hub: LendHub
) -> None:
    hub = kept_hub(HOOK_THAT_LOOKS + T4)

    for user, options, granted in (
        ("cpu", {"accelerator": None}, {}),
        ("gpu", {"accelerator": "t4"}, {"pod.spec.node_selector": ("NoneType", "dict")}),
    ):
        assert differences(with_stock, kinds(hub, user, options)) == SAYS_WHY | granted


def test_each_method_of_a_class_gets_what_kubespawner_gives_it(
    with_stock: dict[str, str], kept_hub: LendHub
) -> None:
    hub = kept_hub(HOOK_THAT_LOOKS + ENDED_BY_POLICIES)

    deadline = {"pod.spec.active_deadline_seconds": ("NoneType", "int")}
    assert differences(with_stock, kinds(hub, "ann")) == SAYS_WHY | deadline
