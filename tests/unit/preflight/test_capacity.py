"""So many servers at once: how many fit, how many need new nodes, and what is missing."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuspawner.cluster.background import Turn
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.types import Accelerator, ScaleUp
from gpuspawner.preflight.capacity import NewNodes, Pull, ServerLimit, headroom
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.scaling.outlook import Obstacle, WhyNoNode
from gpuspawner.scheduling import Outcome, evaluate
from gpuspawner.scheduling.verdicts import Subject
from tests.unit.makers.groups import status
from tests.unit.makers.outlooks import (
    T4,
    Cluster,
    autoscalers,
    node,
    plain_pod,
    pod,
    state,
)
from tests.unit.makers.storage import WAIT
from tests.unit.makers.worlds import having

pytestmark = pytest.mark.usefixtures("clock")

GPU = "nvidia.com/gpu"
POOL = {"pool": "n-1"}
IMAGE = "example.org/lab:1"


def server(gpus=1, memory="8Gi", max_nodes=0, claims=(), **spec):
    """A server that nobody has started."""
    scale_up = ScaleUp(max_nodes, 8) if max_nodes else None
    grant = Grant(Accelerator("t4", "T4", GPU, node_selector=T4, scale_up=scale_up), gpus)
    pod = plain_pod("new", gpus, memory, **spec)
    pod["spec"]["containers"][0]["image"] = IMAGE
    return Proposal("jhub", "new", pod, grant, claims)


def look(known, asked, servers, *limits):
    cluster = known if isinstance(known, Cluster) else Cluster(known)
    looking = headroom(cluster.state, cluster.to_come, asked, servers, Turn(0), limits)
    found = asyncio.run(looking)
    total = found.fits_now + found.on_new_nodes + found.perhaps + found.lacking
    assert total == servers
    return found


def test_those_fit_that_the_evaluation_lets_on_a_node_and_the_rest_lack_it():
    known = state(node("a"), node("b"), pods=(plain_pod("theirs", nodeName="a"),))

    found = look(known, server(), 5)

    assert (found.fits_now, found.lacking) == (3, 2)
    assert (found.short_of.resource, found.short_of.asked, found.short_of.most_free) == (GPU, 1, 0)


@pytest.mark.parametrize("asks", [1, 8])
async def test_everything_else_runs_while_pods_and_servers_are_placed(asks):
    waiting = [plain_pod(f"waits-{number}", asks, "1Gi") for number in range(20)]
    cluster, rounds, ended = Cluster(state(node("a", 1), pods=tuple(waiting))), 0, asyncio.Event()

    async def others():
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


def test_pods_that_are_promised_room_come_first_before_the_state_shows_them():
    cluster = Cluster(state(node("a", 3, "64Gi")))
    promised = [Subject(pod(f"promised-{number}")) for number in range(2)]
    looking = headroom(cluster.state, cluster.to_come, server(), 3, Turn(0), promised=promised)

    found = asyncio.run(looking)

    assert (found.ahead, found.fits_now, found.lacking) == (2, 1, 2)


NODES = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(("4Gi", "20Gi", "32Gi"))), min_size=1, max_size=5
)
SERVERS = st.tuples(st.integers(0, 2), st.sampled_from(("1Gi", "8Gi", "15Gi")))


def with_nodes(nodes, *pods):
    made = [node(f"n{at}", gpus, memory) for at, (gpus, memory) in enumerate(nodes)]
    return state(*made, pods=pods)


@settings(deadline=None)
@given(NODES, SERVERS, st.integers(0, 9), st.randoms())
def test_as_many_fit_as_starts_would_one_by_one_wherever_each_lands(nodes, shape, servers, random):
    bound = []
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
def test_more_servers_or_another_node_never_let_fewer_fit(nodes, shape, servers):
    found = look(with_nodes(nodes), server(*shape), servers)

    assert look(with_nodes(nodes), server(*shape), servers + 1).fits_now >= found.fits_now
    assert look(with_nodes([*nodes, (2, "32Gi")]), server(*shape), servers).lacking <= found.lacking


def test_the_cluster_s_own_state_stays_as_it_is():
    cluster = Cluster(state(node("a"), pods=(plain_pod("pending"),)))
    before = cluster.state.version, dict(cluster.state.nodes["a"].free)

    look(cluster, server(), 3)

    assert (cluster.state.version, dict(cluster.state.nodes["a"].free)) == before
    assert cluster.reservations.version == frozenset()


def test_pods_that_wait_already_come_first_on_nodes_and_on_those_to_come():
    waiting = tuple(plain_pod(f"w{number}") for number in range(3))
    known = state(node("a"), pods=waiting)

    found = look(known, server(max_nodes=3), 4)

    assert (found.ahead, found.fits_now, found.on_new_nodes, found.lacking) == (3, 0, 3, 1)
    assert [(it.nodes, it.servers, it.minutes) for it in found.new_nodes] == [(2, 3, 8)]


def test_pods_of_lower_priority_make_way_and_come_after_the_servers():
    low = {"priority": -10}
    running = (plain_pod(it, nodeName="a", **low) for it in "pq")
    known = state(node("a"), pods=(*running, plain_pod("r", **low)))

    found = look(known, server(), 3)

    assert (found.fits_now, found.preempted, found.ahead, found.lacking) == (2, 2, 0, 1)


def test_only_as_many_of_lower_priority_end_as_servers_need():
    low = {"priority": -10}
    pods = tuple(plain_pod(f"p{number}", nodeName="a", **low) for number in range(4))
    found = look(state(node("a", 4), pods=pods), server(), 1)

    assert (found.fits_now, found.preempted) == (1, 1)


@pytest.mark.parametrize(
    ("limit", "fit"), [({"allocatable": {"count": 2}}, 2), ({}, 4)], ids=["a limit", "none"]
)
def test_each_server_has_a_home_of_its_own_that_counts_toward_a_node_s_limit(limit, fit):
    home = {"name": "home", "persistentVolumeClaim": {"claimName": "claim-new"}}
    spec = {"storageClassName": "wait", "accessModes": ["ReadWriteOncePod"]}
    claim = {"metadata": {"name": "claim-new"}, "spec": spec}
    driver = {"name": "csi", "nodeID": "a", **limit}
    csi_node = {"metadata": {"name": "a"}, "spec": {"drivers": [driver]}}
    known = state(node("a"), storageClasses=(WAIT,), csiNodes=(csi_node,))

    asked = server(gpus=0, memory="1Gi", claims=(claim,), volumes=[home])

    assert look(known, asked, 4).fits_now == fit


def group(name, target, most):
    return f"- name: {name}\n  health: {{cloudProviderTarget: {target}, maxSize: {most}}}\n"


def pool(target, most, *nodes):
    objects = autoscalers(status=status(group("n-1", target, most)))
    return Cluster(state(*nodes), objects, "detect")


def test_the_rest_is_packed_on_nodes_that_a_pool_can_add_up_to_its_maximum():
    cluster = pool(1, 3, node("n-1-x", labels=POOL))

    found = look(cluster, server(selector=POOL), 9)

    assert (found.fits_now, found.lacking) == (2, 3)
    assert found.new_nodes == (NewNodes("n-1", 2, 4, None),)
    assert found.obstacles == (Obstacle(WhyNoNode.AT_MAXIMUM, "n-1", nodes=3),)


def test_the_usual_time_of_a_pool_is_told():
    cluster = pool(1, 3, node("n-1-x", labels=POOL))
    cluster.pools.usual.took("n-1", 240)

    [new] = look(cluster, server(selector=POOL), 3).new_nodes

    assert new.minutes == 4


def test_nobody_knows_what_a_pool_brings_that_has_shown_no_node():
    found = look(pool(0, 3), server(selector=POOL), 4)

    assert (found.perhaps, found.unknown, found.new_nodes) == (4, (), ())


def test_nobody_knows_what_depends_on_objects_that_are_not_known():
    found = look(
        state(node("a"), persistentVolumeClaims=None),
        server(volumes=[{"name": "home", "persistentVolumeClaim": {"claimName": "claim-new"}}]),
        4,
    )

    assert (found.fits_now, found.perhaps) == (0, 4)
    assert "PersistentVolumeClaim" in found.unknown[0]


def test_nobody_knows_how_many_share_a_new_node_if_servers_keep_each_other_away():
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    known = state(node("a", labels={**T4, "kubernetes.io/hostname": "a"}))

    found = look(known, server(max_nodes=3, affinity=apart), 4)

    assert (found.fits_now, found.perhaps, found.new_nodes) == (1, 3, ())
    assert found.unknown[0].startswith("servers keep each other off nodes")
    assert look(known, server(affinity=apart), 4).lacking == 3


def test_servers_never_end_each_other_whatever_their_priority():
    high = {"metadata": {"name": "high"}, "value": 100}
    asked = server(priorityClassName="high")

    assert look(state(node("a"), priorityClasses=(high,)), asked, 4).preempted == 0
    assert look(state(node("a"), priorityClasses=None), asked, 4).perhaps == 2


@pytest.mark.parametrize(("gpus", "fit"), [(2, 0), (1, 2)])
def test_a_node_whose_plugin_refuses_several_shares_holds_no_server_that_asks_for_them(gpus, fit):
    shares = node("a", labels={**T4, "nvidia.com/gpu.sharing-strategy": "mps"})

    assert look(state(shares), server(gpus), 2).fits_now == fit


def test_a_pod_that_cannot_be_read_is_unknown():
    asked = server()
    asked.pod["spec"]["tolerations"] = "none"

    found = look(state(node("a")), asked, 2)

    assert found.perhaps == 2
    assert found.unknown


@pytest.mark.parametrize(
    ("asked", "servers", "pulls"),
    [(server(), 2, 0), (server(), 3, 1), (server(max_nodes=5), 9, 4)],
    ids=["kube-scheduler prefers the node that has it", "one node lacks it", "new nodes lack it"],
)
def test_the_images_to_pull_are_those_that_the_servers_nodes_lack(asked, servers, pulls):
    nodes = node("a"), having(node("b"), IMAGE), node("c")

    found = look(state(*nodes), asked, servers)

    assert found.pulls == ((Pull(IMAGE, pulls, 1),) if pulls else ())


def test_limits_leave_fewer_servers_and_the_tightest_counts():
    limits = ServerLimit("the policy course", 3, "no"), ServerLimit("a ResourceQuota", 1, "no")

    found = look(state(node("a")), server(), 5, *limits)

    assert (found.allowed, found.fits_now, found.without_room, found.lacking) == (1, 1, 0, 4)


def test_what_can_never_be_has_no_room():
    found = look(state(node("a")), server(selector={"pool": "elsewhere"}), 2)

    assert (found.lacking, found.short_of, found.obstacles) == (2, None, ())


def test_no_new_node_helps_servers_whose_volume_is_in_use_nor_is_kept_for_such_a_pod():
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    claim = {
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


def test_no_new_node_helps_servers_that_name_their_node():
    cluster = pool(1, 3, node("n-1-x", labels=POOL))

    found = look(cluster, server(selector=POOL, nodeName="n-1-x"), 3)

    assert (found.fits_now, found.new_nodes, found.lacking) == (2, (), 1)
