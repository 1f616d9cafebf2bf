"""What the state keeps of an object isn't looked through again and again by Python's collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import msgspec
import pytest

from gpuspawner.kube.objects import convert, decode
from gpuspawner.kube.pods import Pod
from gpuspawner.scheduling.node_info import pod_info
from gpuspawner.scheduling.rules import DEFAULT_RULES
from gpuspawner.scheduling.state import ClusterState

pytestmark = pytest.mark.each_python


def _pod(name: str, gpus: str = "1", **spec: object) -> dict[str, object]:
    requests = {"cpu": "500m", "nvidia.com/gpu": gpus}
    return {
        "metadata": {"name": name, "namespace": "hub", "labels": {"app": "jupyterhub"}},
        "spec": {
            "nodeName": "gpu-1",
            "containers": [{"name": "c", "resources": {"requests": requests}}],
            "tolerations": [{"operator": "Exists"}],
            **spec,
        },
    }


def _anti_affinity() -> dict[str, object]:
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "zone"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


TRACKED = {
    "a pod": ("Pod", lambda n: _pod(f"p{n}")),
    "a pod with requests of its own": ("Pod", lambda n: _pod(f"p{n}", gpus=str(n + 1))),
    "a pod with a host port": (
        "Pod",
        lambda n: _pod(f"p{n}", containers=[{"ports": [{"hostPort": n + 1, "protocol": "UDP"}]}]),
    ),
    "a pod with a claim": (
        "Pod",
        lambda n: _pod(f"p{n}", volumes=[{"persistentVolumeClaim": {"claimName": f"home-{n}"}}]),
    ),
    "a pod with an inline volume": (
        "Pod",
        lambda n: _pod(f"p{n}", volumes=[{"csi": {"driver": f"d{n}"}}]),
    ),
    "a pod with the anti-affinity of its Deployment": (
        "Pod",
        lambda n: _pod(f"p{n}", affinity=_anti_affinity()),
    ),
    "a node": (
        "Node",
        lambda n: {
            "metadata": {"name": f"n{n}", "labels": {"host": f"n{n}"}},
            "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]},
            "status": {"allocatable": {"cpu": "8", "pods": "110"}, "capacity": {"cpu": "8"}},
        },
    ),
    "a node's drivers": (
        "CSINode",
        lambda n: {
            "metadata": {"name": f"n{n}"},
            "spec": {"drivers": [{"name": "ebs", "nodeID": f"n{n}", "allocatable": {"count": 25}}]},
        },
    ),
    "a claim": (
        "PersistentVolumeClaim",
        lambda n: {
            "metadata": {"name": f"c{n}", "namespace": "hub", "annotations": {"by": f"u{n}"}},
            "spec": {"accessModes": ["ReadWriteOnce"], "volumeName": f"v{n}"},
        },
    ),
    "a volume": (
        "PersistentVolume",
        lambda n: {
            "metadata": {"name": f"v{n}"},
            "spec": {
                "capacity": {"storage": "10Gi"},
                "accessModes": ["ReadWriteOnce"],
                "claimRef": {"namespace": "hub", "name": f"c{n}"},
                "csi": {"driver": "ebs", "volumeHandle": f"h{n}"},
                "nodeAffinity": {
                    "required": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": "zone", "operator": "In", "values": ["a"]}
                                ]
                            }
                        ]
                    }
                },
            },
        },
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


@pytest.mark.parametrize(("values", "is_shared"), [(1, True), (1_000, False)])
def test_only_small_anti_affinity_outlives_its_pods(values, is_shared) -> None:
    def terms(name: str) -> object:
        expression = {"key": "app", "operator": "In", "values": [f"v{n}" for n in range(values)]}
        term = {"labelSelector": {"matchExpressions": [expression]}, "topologyKey": "zone"}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        pod = convert("Pod", _pod(name, affinity={"podAntiAffinity": required}))
        assert isinstance(pod, Pod)
        return pod_info(pod, DEFAULT_RULES).anti_affinity

    assert terms("a") == terms("b") != ()
    assert (terms("a") is terms("b")) is is_shared


@pytest.mark.parametrize(("resources", "is_shared"), [(2, True), (1_000, False)])
def test_only_few_amounts_outlive_their_pods(resources, is_shared) -> None:
    def requested(name: str) -> object:
        requests = {f"example.com/r{n}": "1" for n in range(resources)}
        pod = convert("Pod", _pod(name, containers=[{"resources": {"requests": requests}}]))
        assert isinstance(pod, Pod)
        return pod_info(pod, DEFAULT_RULES).requested

    assert requested("a") == requested("b") != {}
    assert (requested("a") is requested("b")) is is_shared
