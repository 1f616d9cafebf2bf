"""The live view when connections break, history is lost and objects are unusual."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from gpuspawner.cluster.health import Health, Live
from localcluster import Fleet, LocalCluster, NodeGroup
from localcluster.client import ApiError, Object
from tests.cluster.test_view import ROOM, churn, pod
from tests.cluster.views import aside, until, until_current, viewing
from tests.fixtures.cluster import AddNodes
from tests.servers.cutting_proxy import CuttingProxy
from tests.waiting import PATIENCE


@pytest.fixture
def proxy(cluster: LocalCluster) -> Iterator[CuttingProxy]:
    proxy = CuttingProxy(cluster)
    with proxy.open():
        yield proxy


async def test_random_cuts_of_connections_lose_nothing(
    cluster: LocalCluster, namespace: str, add_nodes: AddNodes, proxy: CuttingProxy, tmp_path: Path
) -> None:
    seed = random.randrange(2**32)
    logging.getLogger(__name__).warning("seed %d", seed)
    dice = random.Random(seed)
    nodes = add_nodes(Fleet((NodeGroup("cuts", 3, ROOM),)))
    async with viewing(proxy.kubeconfig(tmp_path / "kubeconfig", cluster.token)) as view:
        assert await view.first_list(PATIENCE)
        churning = asyncio.create_task(aside(lambda: churn(cluster, namespace, nodes, seed, 150)))
        while not churning.done():
            await asyncio.sleep(dice.uniform(0.02, 0.3))
            proxy.cut()
        await churning

        await until_current(view, cluster)
        await until(view, lambda: isinstance(view.health(), Live))
    assert proxy.cuts


async def test_lost_contact_returns_even_if_nothing_changes(
    cluster: LocalCluster, proxy: CuttingProxy, tmp_path: Path
) -> None:
    async with viewing(proxy.kubeconfig(tmp_path / "kubeconfig", cluster.token)) as view:
        assert await view.first_list(PATIENCE)

        def lost() -> bool:
            proxy.cut()  # again and again: a watch may begin only after a cut
            return not view.in_touch()

        await until(view, lost)

        await until(view, view.in_touch)


async def test_cuts_in_the_middle_of_the_first_list_only_delay_it(
    cluster: LocalCluster, namespace: str, add_nodes: AddNodes, proxy: CuttingProxy, tmp_path: Path
) -> None:
    nodes = add_nodes(Fleet((NodeGroup("early", 2, ROOM),)))
    await aside(lambda: churn(cluster, namespace, nodes, seed=11, steps=40))
    async with viewing(proxy.kubeconfig(tmp_path / "kubeconfig", cluster.token)) as view:
        for _ in range(20):
            await asyncio.sleep(0.01)
            proxy.cut()

        await until(view, lambda: isinstance(view.health(), Live))
        await until_current(view, cluster)


async def test_after_a_gap_in_the_history_everything_is_listed_again(
    cluster: LocalCluster,
    namespace: str,
    add_nodes: AddNodes,
    proxy: CuttingProxy,
    tmp_path: Path,
) -> None:
    """A restarted API server remembers no older versions: it answers 410 Gone."""
    nodes = add_nodes(Fleet((NodeGroup("gap", 3, ROOM),)))
    pods = f"/api/v1/namespaces/{namespace}/pods"

    def pass_over() -> None:
        cluster.api.delete(pods, grace=0)
        churn(cluster, namespace, nodes, seed=12, steps=60)
        cluster.plane.compact()
        cluster.restart_apiserver()

    await aside(lambda: cluster.api.create(pods, pod("vanishes")))
    async with viewing(proxy.kubeconfig(tmp_path / "kubeconfig", cluster.token)) as view:
        assert await view.first_list(PATIENCE)
        proxy.held = True
        proxy.cut()
        await aside(pass_over)
        proxy.held = False
        await until(view, lambda: any(reflector.gap for reflector in view._reflectors))

        await until_current(view, cluster)
        await until(view, lambda: isinstance(view.health(), Live))


# The API server writes each < as \u003c, so this pod has 8.7 MB in JSON, and 1.5 MB in etcd.
VAST_POD: Object = {"container": {"env": [{"name": "VAST", "value": "<" * 1_450_000}]}}


async def test_repeated_changes_of_the_largest_pod_delay_no_other_change(
    cluster: LocalCluster, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"

    def touch(step: int) -> None:
        change = {"metadata": {"labels": {"step": str(step)}}}
        cluster.api.patch(f"{path}/vast", change)
        cluster.api.create(path, pod(f"small-{step}"))

    def is_seen(step: int) -> bool:
        pods = view.state.unbound_pods
        vast = pods[f"{namespace}/vast"].metadata.labels
        return vast == {"step": str(step)} and f"{namespace}/small-{step}" in pods

    await aside(lambda: cluster.api.create(path, unusual_pod("vast", VAST_POD)))
    async with viewing(cluster.kubeconfig) as view:
        assert await view.first_list(PATIENCE)
        health: list[Health] = []
        view.listen(lambda: health.append(view.health()))
        for step in range(10):
            await aside(lambda step=step: touch(step))
            await until(view, lambda step=step: is_seen(step))

        assert {type(one) for one in health} == {Live}


@pytest.fixture
async def deep_pod(cluster: LocalCluster, namespace: str) -> AsyncIterator[str]:
    """A pod whose managed fields are nested deeper than Python's JSON decoders go.

    A client that creates a pod may set its managed fields. Only kubectl can read this pod here.
    """
    path, name = f"/api/v1/namespaces/{namespace}/pods", "deep"
    fields = '{"f:spec":' * 5_000 + "{}" + "}" * 5_000
    managed = (
        '{"manager":"somebody","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1",'
        f'"fieldsV1":{fields}}}'
    )
    metadata = f'{{"name":"{name}","managedFields":[{managed}]}}'
    encoded = f'{{"metadata":{metadata},"spec":{{"containers":[{{"name":"c","image":"x"}}]}}}}'
    await aside(lambda: cluster.kubectl("create", "--raw", path, "-f", "-", stdin=encoded))
    yield f"{namespace}/{name}"
    await aside(lambda: cluster.kubectl("delete", "-n", namespace, "--now", f"pod/{name}"))


async def test_a_pod_with_the_deepest_managed_fields_is_still_decoded(
    cluster: LocalCluster, namespace: str, deep_pod: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    async with viewing(cluster.kubeconfig) as view:
        assert await view.first_list(PATIENCE)
        await aside(lambda: cluster.kubectl("label", "-n", namespace, "pod/deep", "step=1"))
        await aside(lambda: cluster.api.create(path, pod("small")))
        await until(view, lambda: f"{namespace}/small" in view.state.unbound_pods)

        assert view.state.unbound_pods[deep_pod].metadata.labels == {"step": "1"}
        assert isinstance(view.health(), Live)


UNUSUAL_PODS: dict[str, Object] = {
    "annotations of 200 kB": {"metadata": {"annotations": {"notes": "x" * 200_000}}},
    "a thousand variables": {
        "container": {"env": [{"name": f"V{n}", "value": "é" * 100} for n in range(1000)]}
    },
    "exact and tiny requests": {
        "container": {
            "resources": {
                "requests": {"cpu": "1n", "memory": "0.1"},
                "limits": {"memory": "128974848m"},
            }
        }
    },
    "requests in many notations": {
        "container": {
            "resources": {
                "requests": {"cpu": "1e-3", "memory": "1.5e3", "ephemeral-storage": "+1E"},
                "limits": {"nvidia.com/gpu": "1e0"},
            }
        }
    },
    "requests of zero": {
        "container": {"resources": {"requests": {"cpu": "0", "memory": "0Ki"}}},
    },
    "a resource that nobody knows": {
        "container": {"resources": {"limits": {"example.org/qubit-slices_v2": "3"}}}
    },
    "selectors with every operator": {
        "spec": {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {},
                            {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]},
                            {"matchExpressions": [{"key": "b", "operator": "Gt", "values": ["9"]}]},
                        ]
                    }
                }
            }
        }
    },
    "fields that no version has": {"spec": {"quantumEntanglement": {"with": ["everything"]}}},
    "labels at their limits": {"metadata": {"labels": {f"{'a.' * 100}b/{'c' * 63}": "d" * 63}}},
}


def unusual_pod(name: str, parts: Object) -> Object:
    container = {"name": "c", "image": "x", **parts.get("container", {})}
    return {
        "metadata": {"name": name, **parts.get("metadata", {})},
        "spec": {"containers": [container], **parts.get("spec", {})},
    }


async def test_all_unusual_pods_that_the_api_server_accepts_are_decoded(
    cluster: LocalCluster, namespace: str, add_nodes: AddNodes
) -> None:
    add_nodes(Fleet((NodeGroup("unusual", 2, {**ROOM, "cpu": "63999m", "memory": "1e11"}),)))
    path = f"/api/v1/namespaces/{namespace}/pods"
    unusual = {f"unusual-{n}": parts for n, parts in enumerate(UNUSUAL_PODS.values())}

    def create(names: list[str]) -> None:
        for name in names:
            cluster.api.create(path, unusual_pod(name, unusual[name]))

    listed, watched = list(unusual)[::2], list(unusual)[1::2]
    await aside(lambda: create(listed))
    async with viewing(cluster.kubeconfig) as view:
        assert await view.first_list(PATIENCE)
        await aside(lambda: create(watched))

        await until_current(view, cluster)
        assert not list(view.state.undecodable)
        seen = {*view.state.pods, *view.state.unbound_pods}
        assert seen >= {f"{namespace}/{name}" for name in unusual}


@pytest.mark.parametrize("quantity", ["1.5", "1Gi5", "-1", "lots", "1e400", "9" * 40])
async def test_no_quantity_of_a_nodes_gpus_stops_the_view(
    cluster: LocalCluster, add_nodes: AddNodes, quantity: str
) -> None:
    [name] = add_nodes(Fleet((NodeGroup("weird", 1, ROOM),)))

    def give() -> bool:
        change = {"status": {"allocatable": {"nvidia.com/gpu": quantity}}}
        try:
            cluster.api.patch(f"/api/v1/nodes/{name}/status", change)
        except ApiError:
            return False
        return True

    async with viewing(cluster.kubeconfig) as view:
        assert await view.first_list(PATIENCE)
        taken = await aside(give)
        await until_current(view, cluster)

        node = view.state.nodes[name]
        if not taken:
            assert node.allocatable["nvidia.com/gpu"] == 8
        else:
            assert node.problem or node.allocatable["nvidia.com/gpu"] >= 0
