"""Avoiding the nodes whose GPUs have failed a server's owner."""

from collections.abc import Callable
from typing import Any

import pytest
from kubernetes_asyncio.client import V1Container

from gpuspawner.compat.pods import plain
from gpuspawner.offers.vendors import HOSTNAME
from tests.unit.makers.courses import begin
from tests.unit.makers.hubs import A100, TAINT, StillHub, tolerating
from tests.unit.makers.worlds import labelled, node, pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NOT_A = [{"key": HOSTNAME, "operator": "NotIn", "values": ["host-a"]}]


def on_host(name: str, **spec: Any) -> tuple[str, Any]:
    return "Node", labelled(node(name, 2, **spec), {HOSTNAME: f"host-{name}"})


async def start(
    hub: StillHub, gpus: int = 2, hook: Callable[[Any], None] = lambda _: None, **traits: Any
) -> tuple[Any, list[str]]:
    """Start alice's server after the GPUs of node a have failed.

    Returns the affinity to nodes of the pod that is sent, and what the progress page says.
    """
    spawner: Any = hub.spawner(accelerators={"a100": A100}, **traits)
    hub.runtime(spawner).avoided.avoid("alice", "a")
    await begin(spawner, accelerator="a100" if gpus else None, gpus=gpus)
    sent: list[Any] = []

    async def create_namespaced_pod(_: str, pod: Any) -> None:
        sent.append(plain(pod))

    spawner.api.create_namespaced_pod = create_namespaced_pod
    for _ in range(2):  # as KubeSpawner does after a conflict
        made = await spawner.get_pod_manifest()
        hook(made)
        await spawner._make_create_pod_request(made, 3)
    first, again = sent
    assert first == again
    affinity = first["spec"].get("affinity") or {}
    told = spawner.gpuspawner_gates._progress._told.values()
    return affinity.get("nodeAffinity"), [it["message"] for it in told]


async def test_a_server_gets_another_node_if_one_has_room(hub_with) -> None:
    affinity, said = await start(hub_with(on_host("a"), on_host("b")))

    assert affinity == {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": NOT_A}]}}
    assert said == ["Your server gets another machine than the one whose GPUs failed."]


@pytest.mark.parametrize("preflight", ["enforce", "warn", "off"])
async def test_a_server_keeps_the_node_if_no_other_has_room(preflight, hub_with) -> None:
    hub = hub_with(on_host("a"), on_host("b"), ("Pod", pod("x", 1, on="b")))

    affinity, said = await start(hub, preflight=preflight)

    assert affinity == {PREFERRED: [{"weight": 100, "preference": {"matchExpressions": NOT_A}}]}
    assert said == ["Your server may get the machine whose GPUs failed: no other surely has room."]


async def test_room_that_only_admission_gives_counts(hub_with) -> None:
    hub = hub_with(on_host("a", taints=[TAINT]), on_host("b", taints=[TAINT]))
    hub.admission.answer = tolerating

    affinity, _ = await start(hub)

    assert REQUIRED in affinity


async def test_a_server_without_devices_avoids_nothing(hub_with) -> None:
    assert await start(hub_with(on_host("a"), on_host("b")), gpus=0) == (None, [])


async def test_a_container_in_front_hides_no_gpus(hub_with) -> None:
    """The scheduler counts those of all containers; a hook may put one before the server's."""

    def put_in_front(pod: Any) -> None:
        pod.spec.containers.insert(0, V1Container(name="proxy", image="envoy"))

    affinity, _ = await start(hub_with(on_host("a"), on_host("b")), hook=put_in_front)

    assert REQUIRED in affinity


async def test_a_node_that_the_hub_does_not_see_is_avoided_by_its_name(hub_with) -> None:
    affinity, _ = await start(hub_with(on_host("b")))

    [term] = affinity[REQUIRED]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["a"]
