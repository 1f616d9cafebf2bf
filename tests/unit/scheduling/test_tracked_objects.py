"""What the state keeps of an object isn't looked through again and again by Python's collector."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from gpuspawner.kube.objects import convert, decode
from gpuspawner.kube.pods import Pod
from gpuspawner.scheduling.node_info import PodInfo, pod_info
from gpuspawner.scheduling.rules import DEFAULT_RULES
from gpuspawner.scheduling.state import ClusterState
from tests.unit.makers.objects import affinity, node, pod, term
from tests.unit.makers.storage import claim, uses, volume

pytestmark = pytest.mark.each_python


REQUESTS = {"cpu": "500m", "gpu": "1"}


def _pod(number: int, **fields: Any) -> dict[str, Any]:
    return pod(f"p{number}", "gpu-1", {"app": "jupyterhub"}, **{"requests": REQUESTS, **fields})


def _csi_node(number: int) -> dict[str, Any]:
    driver = {"name": "ebs", "nodeID": f"n{number}", "allocatable": {"count": 25}}
    return {"metadata": {"name": f"n{number}"}, "spec": {"drivers": [driver]}}


def _port(number: int) -> list[dict[str, Any]]:
    return [{"ports": [{"hostPort": number + 1, "protocol": "UDP"}]}]


TRACKED: dict[str, tuple[str, Callable[[int], dict[str, Any]]]] = {
    "a pod": ("Pod", _pod),
    "a pod with requests of its own": ("Pod", lambda n: _pod(n, requests={"gpu": str(n + 1)})),
    "a pod with a host port": ("Pod", lambda n: _pod(n, containers=_port(n))),
    "a pod with a claim": ("Pod", lambda n: _pod(n, **uses(f"home-{n}"))),
    "a pod with an inline volume": (
        "Pod",
        lambda n: _pod(n, volumes=[{"csi": {"driver": f"d{n}"}}]),
    ),
    "a pod with the anti-affinity of its Deployment": (
        "Pod",
        lambda n: _pod(n, **affinity(away=[term({"app": "db"})])),
    ),
    "a node": ("Node", lambda n: node(f"n{n}", taints=[{"key": "gpu", "effect": "NoSchedule"}])),
    "a node's drivers": ("CSINode", _csi_node),
    "a claim": ("PersistentVolumeClaim", lambda n: claim(f"c{n}", annotations={"by": f"u{n}"})),
    "a volume": (
        "PersistentVolume",
        lambda n: volume(f"v{n}", "a", csi={"driver": "ebs", "volumeHandle": f"h{n}"}),
    ),
}
"""Kinds of objects, and how one of each looks."""


@pytest.fixture
def frozen() -> Iterator[None]:
    """Take all objects of the test run out of the collector's view, since it has many."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("frozen")
@pytest.mark.parametrize(("kind", "plain"), TRACKED.values(), ids=TRACKED)
def test_the_garbage_collector_has_next_to_nothing_to_look_through(kind, plain) -> None:
    """A full collection holds the hub's event loop for half a microsecond for each object."""
    count, state = 1_000, ClusterState()
    encoded = [msgspec.json.encode(plain(number)) for number in range(count)]
    before = _tracked()
    for one in encoded:
        state.put(decode(kind, one))

    assert not list(state.undecodable)
    assert (_tracked() - before) / count <= 0.1


def _tracked() -> int:
    """Return how many objects are tracked; each collection gives up tuples of untracked objects."""
    gc.collect()
    tracked = len(gc.get_objects())
    while True:
        gc.collect()
        now = len(gc.get_objects())
        if now >= tracked:
            return now
        tracked = now


def _info(**fields: Any) -> PodInfo:
    made = convert("Pod", pod("p", "gpu-1", **fields))
    assert isinstance(made, Pod)
    return pod_info(made, DEFAULT_RULES)


@pytest.mark.parametrize(("values", "is_shared"), [(1, True), (1_000, False)])
def test_only_small_anti_affinity_outlives_its_pods(values, is_shared) -> None:
    expression = {"key": "app", "operator": "In", "values": [f"v{n}" for n in range(values)]}
    away = {"labelSelector": {"matchExpressions": [expression]}, "topologyKey": "zone"}
    one, two = (_info(**affinity(away=[away])).anti_affinity for _ in range(2))

    assert one == two != ()
    assert (one is two) is is_shared


@pytest.mark.parametrize(("resources", "is_shared"), [(2, True), (1_000, False)])
def test_only_few_amounts_outlive_their_pods(resources, is_shared) -> None:
    requests = {f"example.com/r{n}": "1" for n in range(resources)}
    one, two = (_info(requests=requests).requested for _ in range(2))

    assert one == two != {}
    assert (one is two) is is_shared
