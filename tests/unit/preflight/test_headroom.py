"""So many servers at once: how many fit, how many need new nodes, and what is missing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuspawner.cluster.background import Turn
from gpuspawner.kube.objects import strict_convert
from gpuspawner.kube.pods import Pod
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.types import Accelerator, ScaleUp
from gpuspawner.preflight.headroom import Headroom, NewNodes, Pull, ServerLimit, headroom
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.scaling.outlook import Obstacle, WhyNoNode
from gpuspawner.scheduling import ClusterState, Outcome, evaluate
from gpuspawner.scheduling.verdicts import Subject
from tests.unit.makers.groups import status
from tests.unit.makers.outlooks import (
    T4,
    Cluster,
    Plain,
    autoscalers,
    node,
    plain_pod,
    state,
)

pytestmark = pytest.mark.usefixtures("clock")

GPU = "nvidia.com/gpu"
POOL = {"pool": "n-1"}
IMAGE = "example.org/lab:1"


def server(
    gpus: int = 1,
    memory: str = "8Gi",
    max_nodes: int = 0,
    claims: tuple[Plain, ...] = (),
    **spec: Any,
) -> Proposal:
    """A server that nobody has started."""
    scale_up = ScaleUp(max_nodes, 8) if max_nodes else None
    grant = Grant(Accelerator("t4", "T4", GPU, node_selector=T4, scale_up=scale_up), gpus)
    pod = plain_pod("new", gpus, memory, **spec)
    pod["spec"]["containers"][0]["image"] = IMAGE
    return Proposal("jhub", "new", pod, grant, claims)


def look(
    known: ClusterState | Cluster, asked: Proposal, servers: int, *limits: ServerLimit
) -> Headroom:
    cluster = known if isinstance(known, Cluster) else Cluster(known)
    looking = headroom(cluster.state, cluster.to_come, asked, servers, Turn(0), limits)
    found = asyncio.run(looking)
    total = found.fits_now + found.on_new_nodes + found.perhaps + found.lacking
    assert total == servers
    return found


def test_those_fit_that_the_evaluation_lets_on_a_node_and_the_rest_lack_it() -> None:
    known = state(node("a"), node("b"), pods=(plain_pod("theirs", nodeName="a"),))

    found = look(known, server(), 5)

    assert (found.fits_now, found.lacking) == (3, 2)
    assert found.short_of is not None
    assert (found.short_of.resource, found.short_of.asked, found.short_of.most_free) == (GPU, 1, 0)


@pytest.mark.parametrize("asks", [1, 8])
async def test_everything_else_runs_while_pods_and_servers_are_placed(asks: int) -> None:
    waiting = [plain_pod(f"waits-{number}", asks, "1Gi") for number in range(20)]
    cluster, rounds, ended = Cluster(state(node("a", 1), pods=tuple(waiting))), 0, asyncio.Event()

    async def others() -> None:
        nonlocal rounds
        while not ended.is_set():
            rounds += 1
            await asyncio.sleep(0)

    running = asyncio.create_task(others())
    await asyncio.sleep(0)
    found = await headroom(cluster.state, cluster.to_come, server(max_nodes=30), 20, Turn(0))
    ended.set()
    await running

    assert found.on_new_nodes > 0
    # Each pod and each server is placed, and each node that can come is looked at.
    assert rounds > 20 + 20 + 30


def test_pods_that_are_promised_room_come_first_before_the_state_shows_them() -> None:
    cluster = Cluster(state(node("a", 3, "64Gi")))
    promised = [
        Subject(strict_convert(plain_pod(f"promised-{number}", 1), Pod)) for number in range(2)
    ]
    looking = headroom(cluster.state, cluster.to_come, server(), 3, Turn(0), promised=promised)

    found = asyncio.run(looking)

    assert (found.ahead, found.fits_now, found.lacking) == (2, 1, 2)


NODES = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(("4Gi", "20Gi", "32Gi"))), min_size=1, max_size=5
)
SERVERS = st.tuples(st.integers(0, 2), st.sampled_from(("1Gi", "8Gi", "15Gi")))


def with_nodes(nodes: list[tuple[int, str]], *pods: Plain) -> ClusterState:
    made = [node(f"n{at}", gpus, memory) for at, (gpus, memory) in enumerate(nodes)]
    return state(*made, pods=pods)


@settings(deadline=None)
@given(NODES, SERVERS, st.integers(0, 9), st.randoms())
def test_as_many_fit_as_starts_would_one_by_one_wherever_each_lands(
    nodes, shape, servers, random
) -> None:
    bound: list[Plain] = []
    for number in range(servers):
        known = with_nodes(nodes, *bound)
        verdict = evaluate(known, plain_pod("next", *shape))
        if verdict.outcome is not Outcome.FITS:
            break
        there = random.choice(verdict.feasible)
        bound.append(plain_pod(f"server-{number}", *shape, nodeName=there))

    found = look(with_nodes(nodes), server(*shape), servers)

    assert found.fits_now == len(bound)


@settings(deadline=None)
@given(NODES, SERVERS, st.integers(0, 9))
def test_more_servers_or_another_node_never_let_fewer_fit(nodes, shape, servers) -> None:
    found = look(with_nodes(nodes), server(*shape), servers)

    assert look(with_nodes(nodes), server(*shape), servers + 1).fits_now >= found.fits_now
    assert look(with_nodes([*nodes, (2, "32Gi")]), server(*shape), servers).lacking <= found.lacking


def test_the_cluster_s_own_state_stays_as_it_is() -> None:
    cluster = Cluster(state(node("a"), pods=(plain_pod("pending"),)))
    before = cluster.state.version, dict(cluster.state.nodes["a"].free)

    look(cluster, server(), 3)

    assert (cluster.state.version, dict(cluster.state.nodes["a"].free)) == before
    assert cluster.reservations.version == frozenset()


def test_pods_that_wait_already_come_first_on_nodes_and_on_those_to_come() -> None:
    waiting = tuple(plain_pod(f"w{number}") for number in range(3))
    known = state(node("a"), pods=waiting)

    found = look(known, server(max_nodes=3), 4)

    assert (found.ahead, found.fits_now, found.on_new_nodes, found.lacking) == (3, 0, 3, 1)
    assert [(it.nodes, it.servers, it.minutes) for it in found.new_nodes] == [(2, 3, 8)]


def test_pods_of_lower_priority_make_way_and_come_after_the_servers() -> None:
    low = {"priority": -10}
    pods = (plain_pod("p", nodeName="a", **low), plain_pod("q", nodeName="a", **low))
    known = state(node("a"), pods=(*pods, plain_pod("r", **low)))

    found = look(known, server(), 3)

    assert (found.fits_now, found.preempted, found.ahead, found.lacking) == (2, 2, 0, 1)


def test_only_as_many_of_lower_priority_end_as_servers_need() -> None:
    low = {"priority": -10}
    pods = tuple(plain_pod(f"p{number}", nodeName="a", **low) for number in range(4))
    found = look(state(node("a", 4), pods=pods), server(), 1)

    assert (found.fits_now, found.preempted) == (1, 1)


def test_each_server_has_a_home_of_its_own_that_counts_toward_a_node_s_limit() -> None:
    home = {"name": "home", "persistentVolumeClaim": {"claimName": "claim-new"}}
    claim = {
        "metadata": {"name": "claim-new"},
        "spec": {"storageClassName": "ssd", "accessModes": ["ReadWriteOncePod"]},
    }
    ssd = {
        "metadata": {"name": "ssd"},
        "provisioner": "ebs",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    limit = {
        "metadata": {"name": "a"},
        "spec": {"drivers": [{"name": "ebs", "nodeID": "a", "allocatable": {"count": 2}}]},
    }
    asked = server(gpus=0, memory="1Gi", claims=(claim,), volumes=[home])

    assert look(state(node("a"), storageClasses=(ssd,), csiNodes=(limit,)), asked, 4).fits_now == 2
    roomy = {**limit, "spec": {"drivers": [{"name": "ebs", "nodeID": "a"}]}}
    assert look(state(node("a"), storageClasses=(ssd,), csiNodes=(roomy,)), asked, 4).fits_now == 4


def group(name: str, target: int, most: int) -> str:
    return f"- name: {name}\n  health: {{cloudProviderTarget: {target}, maxSize: {most}}}\n"


def pool(target: int, most: int, *nodes: Plain) -> Cluster:
    objects = autoscalers(status=status(group("n-1", target, most)))
    return Cluster(state(*nodes), objects, "detect")


def test_the_rest_is_packed_on_nodes_that_a_pool_can_add_up_to_its_maximum() -> None:
    cluster = pool(1, 3, node("n-1-x", labels=POOL))

    found = look(cluster, server(selector=POOL), 9)

    assert (found.fits_now, found.lacking) == (2, 3)
    assert found.new_nodes == (NewNodes("n-1", 2, 4, None),)
    assert found.obstacles == (Obstacle(WhyNoNode.AT_MAXIMUM, "n-1", nodes=3),)


def test_the_usual_time_of_a_pool_is_told() -> None:
    cluster = pool(1, 3, node("n-1-x", labels=POOL))
    cluster.pools.usual.took("n-1", 240)

    [new] = look(cluster, server(selector=POOL), 3).new_nodes

    assert new.minutes == 4


def test_nobody_knows_what_a_pool_brings_that_has_shown_no_node() -> None:
    found = look(pool(0, 3), server(selector=POOL), 4)

    assert (found.perhaps, found.unknown, found.new_nodes) == (4, (), ())


def test_nobody_knows_what_depends_on_objects_that_are_not_known() -> None:
    found = look(
        state(node("a"), persistentVolumeClaims=None),
        server(volumes=[{"name": "home", "persistentVolumeClaim": {"claimName": "claim-new"}}]),
        4,
    )

    assert (found.fits_now, found.perhaps) == (0, 4)
    assert "PersistentVolumeClaim" in found.unknown[0]


def test_nobody_knows_how_many_share_a_new_node_if_servers_keep_each_other_away() -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    known = state(node("a", labels={**T4, "kubernetes.io/hostname": "a"}))

    found = look(known, server(max_nodes=3, affinity=apart), 4)

    assert (found.fits_now, found.perhaps, found.new_nodes) == (1, 3, ())
    assert found.unknown[0].startswith("servers keep each other off nodes")
    assert look(known, server(affinity=apart), 4).lacking == 3


def test_servers_never_end_each_other_whatever_their_priority() -> None:
    high = {"metadata": {"name": "high"}, "value": 100}
    asked = server(priorityClassName="high")

    assert look(state(node("a"), priorityClasses=(high,)), asked, 4).preempted == 0
    assert look(state(node("a"), priorityClasses=None), asked, 4).perhaps == 2


def test_a_node_whose_plugin_refuses_several_shares_holds_no_server_that_asks_for_them() -> None:
    shares = node("a", labels={**T4, "nvidia.com/gpu.sharing-strategy": "mps"})

    assert look(state(shares), server(gpus=2), 2).fits_now == 0
    assert look(state(shares), server(gpus=1), 2).fits_now == 2


def test_a_pod_that_cannot_be_read_is_unknown() -> None:
    asked = server()
    asked.pod["spec"]["tolerations"] = "none"

    found = look(state(node("a")), asked, 2)

    assert found.perhaps == 2
    assert found.unknown


def having(plain: Plain, *images: str) -> Plain:
    return {**plain, "status": {**plain["status"], "images": [{"names": images, "sizeBytes": 5}]}}


def test_the_images_to_pull_are_those_that_the_servers_nodes_lack() -> None:
    nodes = node("a"), having(node("b"), IMAGE), node("c")

    assert look(state(*nodes), server(), 2).pulls == ()  # kube-scheduler prefers the node with it
    assert look(state(*nodes), server(), 3).pulls == (Pull(IMAGE, 1, 5),)
    assert look(state(*nodes), server(max_nodes=5), 9).pulls == (Pull(IMAGE, 4, 5),)


def test_limits_leave_fewer_servers_and_the_tightest_counts() -> None:
    limits = ServerLimit("the policy course", 3, "no"), ServerLimit("a ResourceQuota", 1, "no")

    found = look(state(node("a")), server(), 5, *limits)

    assert (found.allowed, found.fits_now, found.without_room, found.lacking) == (1, 1, 0, 4)


def test_what_can_never_be_has_no_room() -> None:
    found = look(state(node("a")), server(selector={"pool": "elsewhere"}), 2)

    assert (found.lacking, found.short_of, found.obstacles) == (2, None, ())


def test_no_new_node_helps_servers_whose_volume_is_in_use_nor_is_kept_for_such_a_pod() -> None:
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    claim: Plain = {
        "metadata": {"name": "home", "namespace": "jhub", "annotations": bound},
        "spec": {"volumeName": "disk", "accessModes": ["ReadWriteOncePod"]},
    }
    stored = {
        "persistentVolumeClaims": (claim,),
        "persistentVolumes": ({"metadata": {"name": "disk"}},),
    }
    home = {"volumes": [{"name": "home", "persistentVolumeClaim": {"claimName": "home"}}]}
    pods = plain_pod("has", 2, nodeName="a", **home), plain_pod("waits", 2, **home)
    known = state(node("a"), node("b"), pods=pods, **stored)

    assert look(known, server(max_nodes=5, **home), 2).lacking == 2
    found = look(known, server(max_nodes=4), 99)
    assert (found.ahead, found.fits_now, found.on_new_nodes) == (0, 2, 4)


def test_no_new_node_helps_servers_that_name_their_node() -> None:
    cluster = pool(1, 3, node("n-1-x", labels=POOL))

    found = look(cluster, server(selector=POOL, nodeName="n-1-x"), 3)

    assert (found.fits_now, found.new_nodes, found.lacking) == (2, (), 1)
