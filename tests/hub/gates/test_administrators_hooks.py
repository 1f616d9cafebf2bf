"""Administrators' own code, written for KubeSpawner, works as it does there."""

from __future__ import annotations

import json
import secrets
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from localcluster import LocalCluster
from localcluster.rbac import CHART_RULES
from tests.fixtures.cluster import AddNodes
from tests.hub.configurations import ANSWER_AT_ONCE, T4, t4_nodes
from tests.hub.conftest import StartGPUHub
from tests.hub.kept import LendHub
from tests.hub.pods import Pods
from tests.hub.running import RunningHub
from tests.waiting import wait_for

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
SAYS_WHY = {"pod.spec.containers.notebook.termination_message_policy": ("NoneType", "str")}


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
    hub = kept_hub(HOOK_THAT_LOOKS + T4 + ENDED_BY_POLICIES)

    granted = {
        "pod.spec.active_deadline_seconds": ("NoneType", "int"),
        "pod.spec.node_selector": ("NoneType", "dict"),
    }
    found = kinds(hub, "ann", {"accelerator": "t4"})
    assert differences(with_stock, found) == SAYS_WHY | granted


# Each way to give a pod another name or namespace. A start whose pod is never in view is given up
# after a second, not after 30.
RENAMES = """
import gpuspawner.launch.observed_pod
gpuspawner.launch.observed_pod.NEVER_SEEN_SECONDS = 1.0
from kubespawner import KubeSpawner
class Renaming(KubeSpawner):
    async def start(self):
        if self.user.name == "by-class":
            self.pod_name = "lab-by-class"
        return await super().start()
    async def get_pod_manifest(self):
        pod = await super().get_pod_manifest()
        pod.metadata.annotations["localcluster/start-after"] = "5"
        return pod
c.JupyterHub.spawner_class = Renaming

def before(spawner):
    if spawner.user.name == "by-hook":
        spawner.pod_name = "lab-by-hook"
c.Spawner.pre_spawn_hook = before

def change(spawner, pod):
    if spawner.user.name == "by-pod":
        spawner.pod_name = pod.metadata.name = "lab-by-pod"
    return pod
c.KubeSpawner.modify_pod_hook = change
"""


@pytest.mark.parametrize("user", ["by-hook", "by-class", "by-pod"])
def test_a_pod_that_is_renamed_starts_and_counts_once(
    kept_hub: LendHub, add_nodes: AddNodes, user: str
) -> None:
    add_nodes(t4_nodes(1, 2))
    hub = kept_hub(RENAMES + T4 + ANSWER_AT_ONCE)

    assert hub.start(user, {"accelerator": "t4", "gpus": 1}).status_code in {201, 202}
    wait_for(lambda: f"lab-{user}" in hub.pods.names())
    hub.start_until_ready("next", {"accelerator": "t4", "gpus": 1})
    assert hub.server(user), "Nobody waits for the end of a start that takes 5 s."
    hub.until_ready(user)

    assert hub.pods.names() == {f"lab-{user}", "jupyter-next"}
    hub.stop(user)
    assert hub.pods.names() == {"jupyter-next"}


def test_a_pod_in_another_namespace_starts_and_counts_once(
    running_cluster: LocalCluster, start_gpu_hub: StartGPUHub, add_nodes: AddNodes
) -> None:
    add_nodes(t4_nodes(1, 2))
    other = f"labs-{secrets.token_hex(4)}"
    running_cluster.api.create("/api/v1/namespaces", {"metadata": {"name": other}})
    pods = Pods(running_cluster, other)
    moves = f"""
def before(spawner):
    spawner.namespace = {other!r}
c.Spawner.pre_spawn_hook = before
"""
    with start_gpu_hub(RENAMES + moves + T4, kubeconfig=running_cluster.kubeconfig) as hub:
        hub.until_it_sees_the_cluster()
        with ThreadPoolExecutor(2) as both:
            users = ("ann", "ben")
            list(both.map(lambda it: hub.start_until_ready(it, {"accelerator": "t4"}), users))

        assert pods.names() == {"jupyter-ann", "jupyter-ben"}
        assert hub.start("cem", {"accelerator": "t4"}).status_code == 409
        for user in users:
            hub.stop(user)
        assert not pods.names()


# What fails is named after the user whose start it is.
FAILING = """
import asyncio
from kubespawner import KubeSpawner
c.Spawner.consecutive_failure_limit = 0
c.KubeSpawner.k8s_api_request_retry_timeout = 10

class LedgerError(OSError):
    pass

async def too_slow():
    await asyncio.wait_for(asyncio.sleep(60), 0.01)

async def changing(spawner, pod):
    if spawner.user.name == "changing":
        raise ValueError("Your group has no project.")
    if spawner.user.name == "slow-changing":
        await too_slow()
    return pod
c.KubeSpawner.modify_pod_hook = changing

async def number(spawner):
    if spawner.user.name == "slow-number":
        await too_slow()
    return 1000
c.KubeSpawner.uid = number

async def created(spawner, pod):
    if spawner.user.name.startswith("created"):
        raise RuntimeError("Your course has ended.")
    if spawner.user.name == "slow-created":
        await too_slow()
    if spawner.user.name == "stopping":
        await spawner.stop(now=True)
        await asyncio.sleep(3)
        raise RuntimeError("Your licence is in use.")
c.KubeSpawner.after_pod_created_hook = created

def address(spawner, pod):
    if spawner.user.name == "address":
        raise LookupError("The gateway knows no such server.")
    return f"http://{pod['status']['podIP']}:{spawner.port}"
c.KubeSpawner.get_pod_url = address

class Failing(KubeSpawner):
    async def _start(self):
        if self.user.name == "slow-class":
            await too_slow()
        url = await super()._start()
        if self.user.name == "class":
            await self.stop(True)
            await asyncio.sleep(3)
            raise TimeoutError("The ledger didn't answer.")
        return url
    async def load_user_options(self):
        if self.user.name == "loading":
            raise TimeoutError("The directory didn't answer.")
        await super().load_user_options()
    async def _make_create_pod_request(self, pod, request_timeout):
        if self.user.name == "sending":
            raise LedgerError("The ledger is away.")
        return await super()._make_create_pod_request(pod, request_timeout)
c.JupyterHub.spawner_class = Failing
"""
TOLD = {
    **{f"created-{number}": "Your course has ended." for number in range(6)},
    "changing": "Your group has no project.",
    "stopping": "Your licence is in use.",
    "address": "The gateway knows no such server.",
    "class": "The ledger didn't answer.",
    "loading": "The directory didn't answer.",
    "sending": "The ledger is away.",
    **dict.fromkeys(("slow-changing", "slow-number", "slow-created", "slow-class"), ""),
}
TRACEBACKS = (
    "in too_slow",
    *(f'Error("{text}")' for text in TOLD.values() if text),
)


def test_what_an_administrator_s_code_raises_is_told_as_kubespawner_tells_it(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes
) -> None:
    def fail(user: str) -> str:
        assert hub.start(user).status_code == 202
        message: str = hub.events(user)[-1]["message"]
        return message

    add_nodes(t4_nodes(1, 2))
    with start_gpu_hub(FAILING + ANSWER_AT_ONCE) as hub:
        with ThreadPoolExecutor(len(TOLD)) as at_once:
            told = dict(zip(TOLD, at_once.map(fail, TOLD), strict=True))

        assert told == {user: f"Spawn failed: {text}" for user, text in TOLD.items()}
        assert [it for it in TRACEBACKS if it not in hub.log] == []


@pytest.mark.parametrize(
    ("verbs", "cause"),
    [(["get", "delete"], "cannot create resource"), ([], "Failed to delete service jupyter-ann")],
    ids=["may only delete", "may do nothing"],
)
def test_a_start_whose_service_the_hub_may_not_make_names_that_in_the_log(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes, verbs: list[str], cause: str
) -> None:
    add_nodes(t4_nodes(1, 2))
    with_services = "c.KubeSpawner.services_enabled = True\n"
    with start_gpu_hub(with_services + T4 + ANSWER_AT_ONCE) as hub:
        others, events = (dict(it) for it in CHART_RULES)
        others["resources"] = ["pods", "persistentvolumeclaims", "secrets"]
        services = {"apiGroups": [""], "resources": ["services"], "verbs": verbs or ["list"]}
        role = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{hub.pods.namespace}/roles/hub"
        hub.pods.cluster.api.patch(role, {"rules": [others, events, services]})

        assert hub.start("ann", {"accelerator": "t4"}).status_code == 202
        last = hub.events("ann")[-1]["message"]

        assert last.startswith("Spawn failed: Your server couldn't start because of an error.")
        wait_for(lambda: cause in hub.log)
        assert not hub.pods.names()
