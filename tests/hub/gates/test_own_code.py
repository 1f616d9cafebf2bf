"""What the hub's own code adds to where servers may go; first gates learn it from the last one."""

from __future__ import annotations

from typing import Any

import pytest

from localcluster import Fleet, NodeGroup, Taint
from tests.fixtures.cluster import AddNodes
from tests.hub.kept import LendHub
from tests.hub.people import Person
from tests.waiting import wait_for

DEDICATED = NodeGroup(
    "t4",
    1,
    {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "2"},
    labels={"gpu": "t4", "pool": "gpu"},
    taints=(Taint("dedicated", "gpu", "NoSchedule"),),
)
TOLERATION = {"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}
ACCELERATORS = """
c.GPUSpawner.accelerators = {"t4": {"display_name": "T4", "node_selector": {"gpu": "t4"}}}
"""
PROFILES = """
c.KubeSpawner.profile_list = [{"display_name": "T4", "slug": "t4", "kubespawner_override": {
    "node_selector": {"gpu": "t4"}, "extra_resource_limits": {"nvidia.com/gpu": "1"}}}]
"""
HOOK_OF_THE_POD = f"""
from kubernetes_asyncio.client import V1Toleration
def tolerate(spawner, pod):
    pod.spec.tolerations = [*(pod.spec.tolerations or ()), V1Toleration(**{TOLERATION!r})]
    return pod
c.KubeSpawner.modify_pod_hook = tolerate
"""
HOOK_BEFORE = f"""
def tolerate(spawner):
    spawner.tolerations = [{TOLERATION!r}]
c.KubeSpawner.pre_spawn_hook = tolerate
"""
OWN_START = f"""
from gpuspawner.spawner import GPUSpawner
class Own(GPUSpawner):
    def start(self):
        self.tolerations = [{TOLERATION!r}]
        return super().start()
c.JupyterHub.spawner_class = Own
"""
GROUPS = f"""
c.JupyterHub.load_groups = {{"gpus": {{"users": ["ann", "bob"]}}}}
c.Spawner.group_overrides = {{"gpus": {{
    "groups": ["gpus"], "spawner_override": {{"tolerations": [{TOLERATION!r}]}}}}}}
"""
OFFERS = pytest.mark.parametrize(
    ("offers", "chosen"),
    [(ACCELERATORS, {"accelerator": "t4"}), (PROFILES, {"profile": "t4"})],
    ids=["accelerators", "profiles"],
)


def state(person: Person) -> str:
    """Return the state of the T4 as an open form shows it."""
    url = f"{person.hub.url}/hub/gpuspawner/states/{person.name}/"
    sent = {"Accept": "application/json", "X-XSRFToken": person.xsrf}
    answer: dict[str, Any] = person.session.get(url, headers=sent).json()
    rows = answer.get("accelerators") or answer["profiles"]
    return str(rows[0]["state"])


@OFFERS
@pytest.mark.parametrize(
    "code",
    [HOOK_OF_THE_POD, HOOK_BEFORE, OWN_START],
    ids=["modify_pod_hook", "pre_spawn_hook", "own start"],
)
def test_a_toleration_of_the_hub_s_own_code_lets_the_first_server_start_and_is_known_then(
    kept_hub: LendHub, add_nodes: AddNodes, code: str, offers: str, chosen: dict[str, str]
) -> None:
    add_nodes(Fleet((DEDICATED,)))
    hub = kept_hub(offers + code)
    ann, bob = hub.person("ann"), hub.person("bob")
    assert state(ann) in ("unknown", "free")  # another test may have started a server before

    assert ann.submit(chosen).is_of_a_start
    hub.until_ready("ann")

    wait_for(lambda: state(bob) == "free")
    assert bob.submit(chosen).is_of_a_start
    hub.until_ready("bob")
    cleo = hub.person("cleo")
    wait_for(lambda: state(cleo) == "busy")
    refused = cleo.submit(chosen)
    assert not refused.is_of_a_start
    assert hub.start("cleo", chosen).status_code == 409
    assert not hub.server("cleo")


@OFFERS
def test_group_overrides_are_known_before_the_first_start(
    kept_hub: LendHub, add_nodes: AddNodes, offers: str, chosen: dict[str, str]
) -> None:
    add_nodes(Fleet((DEDICATED,)))
    hub = kept_hub(offers + GROUPS)
    ann, dan = hub.person("ann"), hub.person("dan")

    assert (state(ann), state(dan)) == ("free", "absent")
    assert ann.submit(chosen).is_of_a_start
    hub.until_ready("ann")
    assert not dan.submit(chosen).is_of_a_start
    assert hub.start("dan", chosen).status_code == 409
