"""Verdicts and reservations, compared with what a real kube-scheduler then does."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from kubernetes_asyncio import config
from kubernetes_asyncio.client import ApiClient, Configuration, CoreV1Api

from gpuspawner.cluster.kinds import SCALING_KINDS
from gpuspawner.cluster.view import ClusterView
from gpuspawner.kube.storage import PersistentVolume
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.types import Accelerator
from gpuspawner.preflight.decision import Decision, Reason, Refuse, Start
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.preflight.proposed_pod import Proposal
from localcluster import Fleet, LocalCluster, NodeGroup
from tests.cluster.views import aside, until, until_autoscalers_are_known, viewing
from tests.fixtures.cluster import AddNodes
from tests.waiting import PATIENCE, wait_for

log = logging.getLogger(__name__)

GPU = "nvidia.com/gpu"
PEOPLE = 40


class Hub:
    """Does what a hub does with pods, as far as the preflight is concerned."""

    def __init__(self, view: ClusterView, api: CoreV1Api, namespace: str, pool: str) -> None:
        self.preflight = Preflight(view, patience=20)
        self.view = view
        self.api = api
        self.namespace = namespace
        self.accelerator = Accelerator("a", "A", GPU, node_selector={"pool": pool})

    def proposal(self, name: str, gpus: int) -> Proposal:
        requests = {GPU: str(gpus), "memory": "64Mi"}
        pod: dict[str, object] = {
            "metadata": {"name": name},
            "spec": {
                "nodeSelector": dict(self.accelerator.node_selector),
                "terminationGracePeriodSeconds": 0,
                "containers": [
                    {
                        "name": "notebook",
                        "image": "x",
                        "resources": {"requests": requests, "limits": requests},
                    }
                ],
            },
        }
        return Proposal(self.namespace, name, pod, Grant(self.accelerator, gpus))

    async def spawn(self, name: str, gpus: int) -> Decision:
        """Ask both gates, create the pod and wait until it is bound, as a start does."""
        proposal = self.proposal(name, gpus)
        try:
            decision = await self.preflight.reserving.take(proposal)
            if isinstance(decision, Start):
                decision = await self.preflight.reserving.move(proposal)
            if isinstance(decision, Start):
                await self.create(proposal)
                await until(self.view, lambda: "/".join(proposal.key) in self.view.state.pods)
            return decision
        finally:
            self.preflight.reservations.release(proposal.key)

    async def create(self, proposal: Proposal) -> None:
        await self.api.create_namespaced_pod(self.namespace, proposal.pod)

    async def end(self, name: str) -> None:
        await self.api.delete_namespaced_pod(name, self.namespace, grace_period_seconds=0)


@pytest.fixture
async def hub(cluster: LocalCluster, namespace: str, add_nodes: AddNodes) -> AsyncIterator[Hub]:
    """A hub with nodes of 1, 2, 4 and 8 GPUs."""
    names = {
        name: group_size
        for group_size in (1, 2, 4, 8)
        for name in add_nodes(Fleet((_group(namespace, group_size),)))
    }
    assert sum(names.values()) == 15
    view_of_all = viewing(cluster.kubeconfig, scaling_kinds=SCALING_KINDS)
    async with view_of_all as view, _api(cluster) as api:
        assert await view.first_list(PATIENCE)
        await until_autoscalers_are_known(view)
        yield Hub(view, api, namespace, namespace)


def _group(pool: str, gpus: int) -> NodeGroup:
    room = {"cpu": "16", "memory": "64Gi", "pods": "110", GPU: str(gpus)}
    return NodeGroup(f"{pool}-{gpus}", 1, room, {"pool": pool})


@asynccontextmanager
async def _api(cluster: LocalCluster) -> AsyncIterator[CoreV1Api]:
    configuration = Configuration()
    await config.load_kube_config(str(cluster.kubeconfig), client_configuration=configuration)
    async with ApiClient(configuration) as client:
        yield CoreV1Api(client)


async def spawn_all(hub: Hub, sizes: list[int]) -> dict[str, Decision]:
    names = [f"u{number}" for number in range(len(sizes))]
    spawns = [hub.spawn(name, gpus) for name, gpus in zip(names, sizes, strict=True)]
    return dict(zip(names, await asyncio.gather(*spawns), strict=True))


def started(decisions: dict[str, Decision]) -> set[str]:
    return {name for name, decision in decisions.items() if isinstance(decision, Start)}


def statuses(cluster: LocalCluster, namespace: str) -> dict[str, Any]:
    """Return each pod's node, "" if it has none."""
    pods = cluster.api.items(f"/api/v1/namespaces/{namespace}/pods")
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in pods}


async def assert_all_stay_pending(
    cluster: LocalCluster, hub: Hub, proposals: list[Proposal]
) -> None:
    """Create the refused pods: the scheduler must not find a node for any of them."""

    def unscheduled() -> set[str]:
        """Return the pods that the scheduler reported as unschedulable."""
        return {
            pod["metadata"]["name"]
            for pod in cluster.api.items(f"/api/v1/namespaces/{hub.namespace}/pods")
            for condition in pod["status"].get("conditions", ())
            if condition["type"] == "PodScheduled" and condition["status"] == "False"
        }

    for proposal in proposals:
        await hub.create(proposal)
    names = {proposal.name for proposal in proposals}
    await aside(lambda: wait_for(lambda: names <= unscheduled()))


async def test_exactly_as_many_of_many_servers_start_as_there_are_gpus(
    cluster: LocalCluster, hub: Hub
) -> None:
    decisions = await spawn_all(hub, [1] * PEOPLE)

    refused = [decision for decision in decisions.values() if isinstance(decision, Refuse)]
    assert len(started(decisions)) == 15
    assert {decision.reason for decision in refused} == {Reason.BUSY}
    assert all((await aside(lambda: statuses(cluster, hub.namespace))).values())
    assert len(hub.preflight.reservations) == 0


async def test_with_mixed_sizes_accepted_pods_run_and_refused_pods_would_not(
    cluster: LocalCluster, hub: Hub
) -> None:
    seed = random.randrange(2**32)
    log.warning("seed %d", seed)
    sizes = random.Random(seed).choices([1, 2, 3, 4, 8], k=PEOPLE)

    decisions = await spawn_all(hub, sizes)

    bound = await aside(lambda: statuses(cluster, hub.namespace))
    assert set(bound) == started(decisions)
    assert all(bound.values())
    refused = [
        hub.proposal(name, gpus)
        for (name, decision), gpus in zip(decisions.items(), sizes, strict=True)
        if isinstance(decision, Refuse)
    ]
    assert refused
    await assert_all_stay_pending(cluster, hub, refused)
    assert len(hub.preflight.reservations) == 0


async def test_a_freed_gpu_goes_to_the_next_user_who_asks(hub: Hub) -> None:
    assert isinstance(await hub.spawn("first", 8), Start)
    assert isinstance(await hub.spawn("second", 8), Refuse)
    key = f"{hub.namespace}/first"

    await hub.end("first")
    await until(hub.view, lambda: key not in hub.view.state.pods)

    assert isinstance(await hub.spawn("third", 8), Start)


async def test_reservations_never_exceed_the_gpus_while_users_come_and_go(hub: Hub) -> None:
    seed = random.randrange(2**32)
    log.warning("seed %d", seed)
    dice = random.Random(seed)

    async def person(number: int) -> None:
        for visit in range(3):
            name = f"u{number}-{visit}"
            await asyncio.sleep(dice.random() * 0.3)
            if isinstance(await hub.spawn(name, dice.choice([1, 1, 2, 4])), Start):
                await asyncio.sleep(dice.random() * 0.3)
                await hub.end(name)

    await asyncio.wait_for(asyncio.gather(*(person(number) for number in range(15))), 60)

    assert len(hub.preflight.reservations) == 0
    await until(hub.view, lambda: not any(hub.namespace in key for key in hub.view.state.pods))


async def test_other_clients_pods_count_even_while_they_are_pending(hub: Hub) -> None:
    def seen() -> int:
        pods = [*hub.view.state.pods, *hub.view.state.unbound_pods]
        return sum(key.startswith(f"{hub.namespace}/") for key in pods)

    for number in range(3):
        await hub.create(hub.proposal(f"other{number}", 4))
    await until(hub.view, lambda: seen() == 3)

    decisions = await asyncio.gather(*(hub.spawn(f"u{number}", 2) for number in range(4)))

    assert sum(isinstance(decision, Start) for decision in decisions) == 1


STORAGE = "/apis/storage.k8s.io/v1/storageclasses"
VOLUMES = "/api/v1/persistentvolumes"


@pytest.fixture
def home_class(cluster: LocalCluster, namespace: str) -> Iterator[str]:
    """A storage class with one disk, on the node of eight GPUs, that binds with its first pod."""
    name = f"home-{namespace}"
    waits = {"provisioner": "kubernetes.io/no-provisioner"}
    waits["volumeBindingMode"] = "WaitForFirstConsumer"
    cluster.api.create(STORAGE, {"metadata": {"name": name}, **waits})
    where = {"key": "kubernetes.io/hostname", "operator": "In", "values": [f"{namespace}-8-0"]}
    disk = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": name,
        "local": {"path": "/nowhere"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [where]}]}},
    }
    cluster.api.create(VOLUMES, {"metadata": {"name": name}, "spec": disk})
    yield name
    cluster.api.delete(f"{VOLUMES}/{name}")
    cluster.api.delete(f"{STORAGE}/{name}")


async def test_a_first_login_is_judged_with_its_future_home_volume(
    cluster: LocalCluster, hub: Hub, home_class: str
) -> None:
    node = hub.view.state.nodes[f"{hub.namespace}-8-0"]
    assert node.labels.get("kubernetes.io/hostname") == node.name
    claim: dict[str, Any] = {
        "metadata": {"name": "claim-u"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": home_class,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    await until(hub.view, lambda: hub.view.state.storage.get(PersistentVolume, home_class))
    home = {"name": "home", "persistentVolumeClaim": {"claimName": "claim-u"}}

    def with_home(gpus: int) -> Proposal:
        proposal = hub.proposal("u", gpus)
        spec = {**proposal.pod["spec"], "volumes": [home]}
        return replace(proposal, pod={**proposal.pod, "spec": spec}, new_claims=(claim,))

    assert isinstance(await hub.spawn("other", 8), Start)
    assert isinstance(hub.preflight.decider.check(with_home(1)), Refuse)
    await hub.end("other")
    await until(hub.view, lambda: not node.pods)
    assert hub.preflight.decider.check(with_home(1)) == Start(with_home(1).grant)

    claims = f"/api/v1/namespaces/{hub.namespace}/persistentvolumeclaims"
    await aside(lambda: cluster.api.create(claims, claim))
    await hub.create(with_home(1))
    await until(hub.view, lambda: f"{hub.namespace}/u" in node.pods)
    await aside(lambda: cluster.api.delete(f"{claims}/claim-u"))
