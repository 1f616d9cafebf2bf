"""Karpenter's pools, by their limits, requirements, NodeClaims and nodes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest

from gpuspawner.kube.autoscaling import NodeClaim, NodePool
from gpuspawner.kube.objects import Undecodable, convert
from gpuspawner.scaling.node_pool import like, new_node
from gpuspawner.scaling.outlook import (
    CannotScaleUp,
    CanScaleUp,
    MayScaleUp,
    Obstacle,
    Source,
    WhyNoNode,
)
from gpuspawner.scaling.starting_nodes import is_young
from gpuspawner.scheduling.filters import Filters
from gpuspawner.scheduling.verdicts import Subject
from tests.unit.makers.outlooks import (
    Cluster,
    Plain,
    asks,
    autoscalers,
    node,
    outlook,
    pod,
    short,
    state,
    why,
)

TYPE = "node.kubernetes.io/instance-type"
ZONE = "topology.kubernetes.io/zone"
GPU = "nvidia.com/gpu"
OF_GPU = {"karpenter.sh/nodepool": "gpu"}
SMALL = {**OF_GPU, TYPE: "g.small", ZONE: "a"}
MAY = MayScaleUp(Source.KARPENTER)


def need(key: str, operator: str, *values: str) -> Plain:
    return {"key": key, "operator": operator, "values": list(values)}


def pool(
    *requirements: Plain,
    limits: dict[str, str] | None = None,
    used: dict[str, str] | None = None,
    ready: str = "True",
    meta: Plain | None = None,
    **spec: Any,
) -> Plain:
    template: Plain = {
        "spec": {"requirements": list(requirements), "taints": spec.pop("taints", None)}
    }
    return {
        "metadata": {"name": "gpu", **(meta or {})},
        "spec": {"template": template, "limits": limits, **spec},
        "status": {"resources": used, "conditions": [{"type": "Ready", "status": ready}]},
    }


def claim(name: str, gpus: int, on: str = "", **labels: str) -> Plain:
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    return {
        "metadata": {"name": name, "labels": {**SMALL, **labels}},
        "status": {"nodeName": on, "capacity": amounts, "allocatable": amounts},
    }


def small(name: str = "n", gpus: int = 1, **spec: Any) -> Plain:
    return node(name, gpus, labels=SMALL, **spec)


def look(*pools: Plain, nodes: tuple[Plain, ...] = (), asked: Any = None, **more: Any) -> Any:
    return outlook(
        state(*nodes), asked or asks(), objects=autoscalers(pools, **more), autoscaling="detect"
    )


def full() -> Plain:
    """Return a node that is too full for the pod, though an empty one like it isn't."""
    return small(unschedulable=True)


ONLY_SMALL, ONLY_LARGE = need(TYPE, "In", "g.small"), need(TYPE, "In", "g.large")
"""A pool of the small ones makes only machines with 8 cores, 32 GiB and a GPU."""
CAPACITY = "karpenter.sh/capacity-type"
ON_DEMAND = node("n", 1, labels={**SMALL, CAPACITY: "on-demand"}, unschedulable=True)
MODEL = {"nvidia.com/gpu.product": "T4"}
DISCOVERED = node("n", 1, labels={**SMALL, **MODEL}, unschedulable=True)
WITH_MODEL = need("nvidia.com/gpu.product", "In", "T4")
OTHERS = node("core", 1, labels={}, unschedulable=True)
SPOT_TOO = need(CAPACITY, "In", "spot", "on-demand")
TAINTED = pool(taints=[{"key": "team", "value": "x", "effect": "NoSchedule"}])
TOLERATION = {"operator": "Exists"}
AT_LIMIT = pool(limits={GPU: "1"}, used={GPU: "1"})
EXCEEDED = pool(limits={GPU: "1"}, used={GPU: "2"})
HUGE = pool(limits={GPU: "1e1000"})
TIGHT = {"memory": "20Gi"}
NEVER, LIMIT = [WhyNoNode.NO_SUCH_MACHINE], [WhyNoNode.LIMIT]
TAKEN = CannotScaleUp((Obstacle(WhyNoNode.TAKEN, "gpu"),))


def odd(key: str) -> Plain:
    return small(taints=[{"key": key, "effect": "NoSchedule"}])


def in_zone(zone: str) -> Any:
    return asks(selector={ZONE: zone})


def with_two_nodes(most: str) -> Plain:
    return pool(limits={"nodes": most}, used={"nodes": "2"})


IF = {
    "nobody has seen its machines": ([pool()], [], asks(), MAY),
    "there are only nodes of others": ([pool()], [OTHERS], asks(), MAY),
    "the pod doesn't tolerate its taint": ([TAINTED], [], asks(), NEVER),
    "the pod tolerates its taint": ([TAINTED], [], asks(tolerations=[TOLERATION]), MAY),
    "its node has a taint of its own while it starts": (
        [pool(ONLY_SMALL)], [odd("example.com/startup")], asks(), CanScaleUp
    ),
    "its node has a taint of its own while it ends": (
        [pool(ONLY_SMALL)], [odd("karpenter.sh/disrupted")], asks(), CanScaleUp
    ),
    "the pod's volume is in another of its zones": (
        [pool(ONLY_SMALL, need(ZONE, "In", "a", "b"))], [full()], in_zone("b"), MAY
    ),
    "the pod's volume is in none of its zones": (
        [pool(ONLY_SMALL, need(ZONE, "In", "a"))], [full()], in_zone("b"), NEVER
    ),
    "it may make another capacity type than the one seen": (
        [pool(ONLY_SMALL, SPOT_TOO)], [ON_DEMAND], asks(selector={CAPACITY: "spot"}), MAY
    ),
    "the pod selects what is only discovered on its machines": (
        [pool(ONLY_SMALL)], [DISCOVERED], asks(selector=MODEL), NEVER
    ),
    "the pod selects what it defines for its machines": (
        [pool(ONLY_SMALL, WITH_MODEL)], [DISCOVERED], asks(selector=MODEL), CanScaleUp
    ),
    "all its types are too small": ([pool(ONLY_SMALL)], [full()], asks(4), NEVER),
    "one of its types may be large enough": (
        [pool(need(TYPE, "In", "g.small", "g.large"))], [full()], asks(4), MAY
    ),
    "it makes no machine there any more": (
        [pool(ONLY_LARGE, need(ZONE, "In", "b"))], [full()], in_zone("a"), NEVER
    ),
    "it makes other machines by now": ([pool(ONLY_LARGE)], [full()], asks(), MAY),
    "its limit is reached": ([AT_LIMIT], [full()], asks(), LIMIT),
    "its limit of what isn't asked for is reached": ([AT_LIMIT], [], asks(0), MAY),
    "its limit of what isn't asked for is exceeded": ([EXCEEDED], [], asks(0), LIMIT),
    "its limit of nodes is reached": ([with_two_nodes("2")], [], asks(), [WhyNoNode.AT_MAXIMUM]),
    "its limit of nodes leaves one": ([with_two_nodes("3")], [], asks(), MAY),
    "a smaller machine may be within its limit": ([pool(limits=TIGHT)], [full()], asks(), MAY),
    "no machine is within its limit": ([pool(ONLY_SMALL, limits=TIGHT)], [full()], asks(), LIMIT),
    "its limit can't be read": ([pool(limits={"nvidia.com/gpu": "many"})], [], asks(), MAY),
    "its limit is beyond all numbers": (
        [HUGE, pool(meta={"name": "other"})], [small()], asks(4), MAY
    ),
    "it is static": ([pool(replicas=2)], [full()], asks(), [WhyNoNode.AT_MAXIMUM]),
    "it isn't ready": ([pool(ready="False")], [full()], asks(), [WhyNoNode.REFUSED]),
    "it is being deleted": (
        [pool(meta={"deletionTimestamp": "2026-01-01T00:00:00Z"})],
        [full()], asks(), [WhyNoNode.REFUSED],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("pools", "nodes", "asked", "answer"), IF.values(), ids=IF)
def test_what_a_pool_can_do_for_a_pod_if(pools, nodes, asked, answer) -> None:
    assert short(look(*pools, nodes=tuple(nodes), asked=asked)) == answer


@pytest.mark.parametrize(
    "label", ["amd.com/gpu.product-name", "beta.amd.com/gpu.product-name", "gpu.intel.com/product"]
)
def test_no_machine_comes_for_a_model_that_programs_on_the_nodes_discover(label) -> None:
    seen = node("n", 1, labels={**SMALL, label: "x"}, unschedulable=True)

    assert why(look(pool(ONLY_SMALL), nodes=(seen,), asked=asks(selector={label: "x"}))) == NEVER


def test_a_pool_that_has_made_such_a_machine_can_make_another() -> None:
    assert look(pool(), nodes=(full(),)) == CanScaleUp(0, None, None, Source.KARPENTER, "gpu")


def test_a_pool_that_was_deleted_and_comes_back_may_make_other_machines() -> None:
    objects = autoscalers((pool(ONLY_SMALL),))
    cluster = Cluster(state(full()), objects, "detect")
    assert why(cluster.outlook(asks(2))) == [WhyNoNode.NO_SUCH_MACHINE]

    cluster.state.remove("Node", "", "n")
    objects.remove("NodePool", "", "gpu")
    assert cluster.outlook(asks(2)) == CannotScaleUp()
    objects.put(msgspec.convert(pool(ONLY_SMALL), NodePool))

    assert cluster.outlook(asks(2)) == MAY


def test_a_limit_of_nodes_is_told_with_the_nodes_that_there_are() -> None:
    limited = pool(limits={"nodes": "3"}, used={"nodes": "1"})

    assert look(limited, nodes=(full(),)) == CanScaleUp(1, 3, None, Source.KARPENTER, "gpu")


CORE_AND_A_HALF = {"name": "notebook", "resources": {"requests": {"cpu": "1500m"}}}


@pytest.mark.parametrize(
    ("limit", "used", "is_enough"),
    [
        ({"cpu": "8"}, {}, True),
        ({"cpu": "8000m"}, {}, True),
        ({"cpu": "7999m"}, {}, False),
        ({"cpu": "16"}, {"cpu": "8"}, True),
        ({"cpu": "16"}, {"cpu": "8001m"}, False),
        ({"cpu": "0.016k"}, {"cpu": "8000m"}, True),
        ({"memory": "32Gi"}, {}, True),
        ({"memory": "34359738367"}, {}, False),
        ({"memory": "64Gi"}, {"memory": "32Gi"}, True),
        ({GPU: "1"}, {}, True),
        ({GPU: "1"}, {GPU: "1"}, False),
        ({"nodes": "2"}, {"nodes": "1"}, True),
        ({"nodes": "2"}, {"nodes": "2"}, False),
    ],
)
def test_a_limit_allows_as_many_machines_as_fit_into_what_is_left(limit, used, is_enough) -> None:
    found = look(pool(ONLY_SMALL, limits=limit, used=used), nodes=(full(),))

    assert isinstance(found, CanScaleUp if is_enough else CannotScaleUp)


@pytest.mark.parametrize(
    ("limit", "is_enough"), [("1", False), ("1499m", False), ("1500m", True), ("2", True)]
)
def test_a_limit_of_cores_must_leave_what_the_pod_asks_for_in_millicores(limit, is_enough) -> None:
    """Nobody has seen the pool's machines, so only what the pod asks for tells."""
    found = look(pool(limits={"cpu": limit}), asked=pod(selector={}, containers=[CORE_AND_A_HALF]))

    assert found == MAY if is_enough else why(found) == [WhyNoNode.LIMIT]


@pytest.mark.parametrize(
    ("limits", "spec"),
    [({"cpu": "3"}, {"containers": [CORE_AND_A_HALF]}), ({GPU: "2"}, {})],
    ids=["of cores", "of GPUs"],
)
def test_those_who_wait_use_up_a_limit_before_their_nodes_exist(limits, spec) -> None:
    cluster = Cluster(state(), autoscalers((pool(limits=limits),)), "detect")
    b, c, d = (pod(name, selector={}, **spec) for name in "bcd")
    for one in (b, c):
        assert cluster.outlook(one) == MAY
        cluster.state.put(one)

    assert why(cluster.outlook(d)) == [WhyNoNode.TAKEN]


NEAR_NOBODY = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "labelSelector": {"matchLabels": {"app": "nobody"}},
                "topologyKey": "kubernetes.io/hostname",
            }
        ]
    }
}
OF_CATEGORY = need("karpenter.k8s.aws/instance-category", "In", "g")
IMPOSSIBLE = {
    "more GPUs than the limit leaves": ({"gpus": 64}, "16", CanScaleUp),
    "more memory than a machine has": ({"gpus": 8, "memory": "9Ti"}, "16", MayScaleUp),
    "a machine that the limit doesn't leave": ({"gpus": 8}, "12", MayScaleUp),
    "another pod, which isn't there": ({"gpus": 8, "affinity": NEAR_NOBODY}, "16", MayScaleUp),
    "a zone without machines": ({"gpus": 8, "selector": {ZONE: "b"}}, "16", MayScaleUp),
}


def with_eight(limit: str) -> Cluster:
    """Return a pool with a full machine of eight GPUs that may make machines of other types."""
    limited = pool(OF_CATEGORY, limits={GPU: limit}, used={GPU: "8"})
    objects = autoscalers((limited,), (claim("c", 8, on="n"),))
    return Cluster(state(small(gpus=8, unschedulable=True)), objects, "detect")


@pytest.mark.parametrize(("spec", "limit", "expected"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_nobody_is_refused_for_a_pod_that_waits_in_vain_for(spec, limit, expected) -> None:
    cluster = with_eight(limit)
    cluster.state.put(pod("stuck", **{"selector": {}, **spec}))

    assert isinstance(cluster.outlook(asks()), expected)


def test_a_pod_that_gets_the_last_machine_takes_it_also_from_who_asks_for_less() -> None:
    cluster = with_eight("16")
    cluster.state.put(pod("b", gpus=8, selector={}))

    assert cluster.outlook(asks()) == TAKEN


def test_a_pool_that_cannot_be_read_may_help() -> None:
    objects = autoscalers()
    objects.put(Undecodable("NodePool", "", "odd", "", "its spec is a number"))

    assert outlook(state(), asks(), objects=objects, autoscaling="detect") == MAY


def test_startup_taints_are_those_that_no_pool_keeps() -> None:
    def taint(key: str) -> Plain:
        return {"key": key, "effect": "NoSchedule"}

    warming, kept = pool(taints=[taint("team")]), pool(meta={"name": "b"})
    warming["spec"]["template"]["spec"]["startupTaints"] = [taint("warming")]
    kept["spec"]["template"]["spec"]["startupTaints"] = [taint("team")]
    made = {**claim("c", 1), "spec": {"startupTaints": [taint("drifted")]}}
    objects = autoscalers((warming, kept), (made,))

    assert objects.startup_taints == {"warming", "drifted"}
    objects.remove("NodeClaim", "", "c")
    assert objects.startup_taints == {"warming"}


def test_a_new_node_with_its_pools_startup_taint_is_on_its_way_and_no_kind_of_its_own() -> None:
    now = datetime.now(UTC).isoformat()
    warming = {"key": "example.com/warming", "effect": "NoSchedule"}
    full = pool(ONLY_SMALL, limits={"nodes": "1"})
    full["spec"]["template"]["spec"]["startupTaints"] = [warming]
    objects = autoscalers((full,), (claim("c", 1, on="n"),))
    known = state(small("n", created=now, taints=[warming]))
    known.expect(objects.startup_taints)

    found = outlook(known, asks(), objects=objects, autoscaling="detect")

    assert isinstance(found, CanScaleUp)
    assert like(known.nodes["n"]).taints == ()


def test_a_claim_on_its_way_holds_the_pod_although_the_limit_is_reached() -> None:
    assert isinstance(look(AT_LIMIT, claims=(claim("c", 1),)), CanScaleUp)


def test_a_claim_that_is_not_launched_yet_promises_nothing() -> None:
    bare = {"metadata": {"name": "c", "labels": SMALL}}

    assert why(look(AT_LIMIT, claims=(bare,))) == [WhyNoNode.LIMIT]


def test_one_gpu_on_its_way_is_promised_to_one_person() -> None:
    cluster = Cluster(state(), autoscalers((AT_LIMIT,), (claim("c", 1),)), "detect")
    cluster.state.put(pod("waits", selector={}))

    assert why(cluster.outlook(asks())) == [WhyNoNode.TAKEN]


def test_a_larger_machine_for_another_may_use_up_the_limit() -> None:
    large = {**OF_GPU, TYPE: "g.large", ZONE: "a"}
    nodes = (full(), node("l", 8, labels=large, unschedulable=True))
    limited = pool(limits={GPU: "8"})
    cluster = Cluster(state(*nodes), autoscalers((limited,)), "detect")
    cluster.state.put(pod("b", gpus=8, selector={}))

    found = cluster.outlook(asks())
    assert not isinstance(found, CanScaleUp)


def test_a_machine_of_a_kind_with_more_gpus_may_hold_all_that_wait() -> None:
    large = node(
        "l", 4, memory="48Gi", labels={**OF_GPU, TYPE: "g.large", ZONE: "a"}, unschedulable=True
    )
    tight = pool(limits={"memory": "64Gi"})
    cluster = Cluster(state(full(), large), autoscalers((tight,)), "detect")
    for name in ("b", "c"):
        cluster.reservations.take_of_new_node(
            ("jhub", name), Subject(pod(name, memory="1Gi", selector={}))
        )

    assert cluster.outlook(pod("d", memory="1Gi", selector={})) == MAY


def only_four_wait(cluster: Cluster) -> bool:
    """Whether four people may have what comes, one after the other, and a fifth mayn't."""
    for name in ("b1", "b2", "b3", "b4"):
        if isinstance(cluster.outlook(pod(name, selector={})), CannotScaleUp):
            return False
        cluster.state.put(pod(name, selector={}))
    return cluster.outlook(pod("b5", selector={})) == TAKEN


def of_shares(
    limit: int, used: int, *coming: Plain, types: tuple[Plain, ...] = (ONLY_SMALL,), name: str = GPU
) -> Cluster:
    """Return a cluster with a full machine of one GPU, which the device plugin shares in four."""
    limited = pool(*types, limits={GPU: str(limit)}, used={GPU: str(used)})
    shared = small("n", 0, unschedulable=True)
    shared["status"]["allocatable"][name] = shared["status"]["capacity"][name] = "4"
    objects = autoscalers((limited,), (claim("c", 1, on="n"), *coming))
    return Cluster(state(shared), objects, "detect")


def test_a_limit_counts_the_gpus_that_a_claim_has_told_and_not_the_shares_of_a_new_machine() -> (
    None
):
    """The claim may be gone before its node."""
    cluster = of_shares(5, 4)
    assert isinstance(cluster.outlook(asks()), CanScaleUp)

    cluster.pools._objects.remove("NodeClaim", "", "c")

    assert isinstance(cluster.outlook(asks()), CanScaleUp)


def test_a_claim_that_tells_no_capacity_does_not_hide_that_of_its_node() -> None:
    limited = pool(ONLY_SMALL, limits={GPU: "3"}, used={GPU: "2"})
    half = claim("c", 2, on="n")
    del half["status"]["capacity"]
    objects = autoscalers((limited,), (half,))

    cluster = Cluster(state(small("n", 2, unschedulable=True)), objects, "detect")

    assert why(cluster.outlook(asks())) == LIMIT


def test_a_limit_counts_the_gpus_of_a_new_machine_if_its_shares_have_another_name() -> None:
    shared = "nvidia.com/gpu.shared"
    one = {"name": "notebook", "resources": {"limits": {shared: "1"}}}
    cluster = of_shares(1, 1, name=shared)

    assert why(cluster.outlook(pod(selector={}, containers=[one]))) == LIMIT


def test_a_pod_that_asks_for_more_shares_than_its_type_has_gpus_is_promised_no_new_machine() -> (
    None
):
    """Karpenter adds none for it, as long as nobody has told it of the shares."""
    cluster = of_shares(9, 4)

    assert cluster.outlook(asks(2)) == MAY
    assert why(cluster.outlook(asks(5))) == NEVER


def test_a_claim_on_its_way_has_room_for_as_many_as_share_the_gpus_of_its_type() -> None:
    cluster = of_shares(5, 5, claim("d", 1))

    assert isinstance(cluster.outlook(asks()), CanScaleUp)
    assert only_four_wait(cluster)


def test_a_claim_for_a_pool_at_zero_does_not_hide_how_its_nodes_shared_their_gpus() -> None:
    cluster = of_shares(1, 1)
    cluster.outlook(asks())
    cluster.state.remove("Node", "", "n")
    cluster.state.put(pod("waits", selector={}))

    assert isinstance(cluster.outlook(asks()), CanScaleUp)


def test_a_node_without_its_gpu_does_not_hide_what_a_later_claim_tells_of_its_type() -> None:
    objects = autoscalers((pool(ONLY_SMALL),))
    cluster = Cluster(state(small("n", 0)), objects, "detect")
    cluster.outlook(asks())
    objects.put(msgspec.convert(claim("c", 1), NodeClaim))

    assert isinstance(cluster.outlook(asks()), CanScaleUp)


INTERFACES = {"vpc.amazonaws.com/pod-eni": "39"}
"""karpenter-provider-aws counts them as an instance type's, also if no node shows them."""


def having(thing: Plain, more: dict[str, str]) -> Plain:
    """Return the node or NodeClaim with more devices."""
    for amounts in (thing["status"]["capacity"], thing["status"]["allocatable"]):
        amounts.update(more)
    return thing


def test_a_claim_that_tells_devices_which_no_node_shows_has_room_for_all_who_share_its_gpus() -> (
    None
):
    limited = pool(ONLY_SMALL, limits={GPU: "5"}, used={GPU: "5"})
    shared = having(small("n", 0, unschedulable=True), {GPU: "4"})
    claims = (having(claim("c", 1, on="n"), INTERFACES), having(claim("d", 1), INTERFACES))
    cluster = Cluster(state(shared), autoscalers((limited,), claims), "detect")

    assert isinstance(cluster.outlook(asks()), CanScaleUp)
    assert only_four_wait(cluster)


def test_a_node_that_has_others_devices_before_its_gpus_does_not_hide_those_of_its_claim() -> None:
    new = having(small("n", 0, created=datetime.now(UTC).isoformat()), {"example.com/fuse": "20"})
    objects = autoscalers((pool(ONLY_SMALL),), (claim("c", 1, on="n"),))
    cluster = Cluster(state(new), objects, "detect")
    cluster.outlook(asks(0, memory="100Gi"))  # to this pod, the node isn't starting

    assert isinstance(cluster.outlook(asks()), CanScaleUp)


def test_a_node_with_slices_under_another_name_shows_what_its_type_offers() -> None:
    slices = {"nvidia.com/mig-1g.5gb": "7"}
    sliced = having(small("n", 0, unschedulable=True), slices)
    objects = autoscalers((pool(ONLY_SMALL),), (claim("c", 1, on="n"),))
    cluster = Cluster(state(sliced), objects, "detect")

    assert why(cluster.outlook(asks())) == NEVER


def test_those_who_wait_use_up_a_limit_by_the_shares_that_it_leaves() -> None:
    assert only_four_wait(of_shares(5, 4, types=()))


def test_a_pod_that_waits_for_a_cpu_pool_takes_no_gpu_machine() -> None:
    cluster = Cluster(state(), autoscalers((AT_LIMIT,), (claim("c", 1),)), "detect")
    cluster.state.put(pod("cpu", gpus=0, memory="30Gi", selector={}))
    assert isinstance(cluster.outlook(asks()), CanScaleUp | MayScaleUp)


def test_a_claim_that_is_being_deleted_leaves_its_place_to_the_pool() -> None:
    going = claim("c", 1)
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    full = pool(limits={"nodes": "1"}, used={"nodes": "0"})

    assert look(full, claims=(going,)) == MAY
    assert why(look(full, claims=(claim("b", 1), going), asked=asks(2))) == [WhyNoNode.AT_MAXIMUM]


def test_the_pods_of_daemon_sets_take_room_on_the_next_node_also_if_a_claim_is_known() -> None:
    daemon = {
        "metadata": {
            "name": "d",
            "namespace": "kube-system",
            "ownerReferences": [{"kind": "DaemonSet", "name": "d", "controller": True}],
        },
        "spec": {"nodeName": "n", "containers": [{"resources": {"requests": {"memory": "4Gi"}}}]},
    }
    only = pool(ONLY_SMALL)
    objects = autoscalers((only,), (claim("c", 1, on="n"),))
    known = state(small(), pods=(daemon,))

    cluster = Cluster(known, objects, "detect")
    assert isinstance(cluster.outlook(asks(memory="28Gi")), CanScaleUp)
    assert why(cluster.outlook(asks(memory="30Gi"))) == NEVER


def test_a_node_without_its_gpu_does_not_speak_for_its_type() -> None:
    only = pool(ONLY_SMALL)

    for nodes in ((small("a", 1), small("b", 0)), (small("b", 0), small("a", 1))):
        assert isinstance(look(only, nodes=nodes), CanScaleUp)
    assert isinstance(look(only, nodes=(small("b", 0),), claims=(claim("c", 1, "b"),)), CanScaleUp)


def test_each_node_and_claim_is_read_once_for_all_pods(monkeypatch) -> None:
    read, made = Mock(wraps=is_young), Mock(wraps=new_node)
    monkeypatch.setattr("gpuspawner.scaling.karpenter.is_young", read)
    monkeypatch.setattr("gpuspawner.scaling.karpenter.new_node", made)
    nodes = tuple(small(str(number)) for number in range(20))
    claims = tuple(claim(f"c{number}", 1, on=str(number)) for number in range(20))
    names = {it["metadata"]["name"] for it in claims}
    pools = tuple(pool(meta={"name": name}) for name in ("gpu", "a", "b"))
    cluster = Cluster(state(*nodes), autoscalers(pools, claims), "detect")
    for gpus in (1, 2, 4):
        cluster.pools.seen(Filters(cluster.state, asks(gpus)))

    assert read.call_count == len(nodes)
    cluster.state.put(convert("Node", small("new")))
    cluster.pools.seen(Filters(cluster.state, asks()))

    assert read.call_count == 2 * len(nodes) + 1
    of_claims = [it for it in made.call_args_list if it.args[0] in names]
    assert len(of_claims) == len(claims)


def test_karpenters_no_to_a_pod_that_a_machine_it_has_made_would_hold_holds_only_for_now() -> None:
    """It leaves out a pool whose types aren't available, and says what is wrong with the others."""
    objects = autoscalers((pool(ONLY_SMALL), pool(ONLY_LARGE, meta={"name": "other"})))
    cluster = Cluster(state(full()), objects, "detect")
    assert isinstance(cluster.outlook(asks()), CanScaleUp)
    text = "Failed to schedule pod, incompatible requirements, key gpu, gpu In [t4] not in [a100]"
    for asked in (asks(), asks(2)):
        no = Obstacle(WhyNoNode.NO_SUCH_MACHINE, detail=text)
        cluster.to_come.remember(Subject(asked), Source.KARPENTER, no)

    assert WhyNoNode.REFUSED in why(cluster.outlook(asks()))
    assert set(why(cluster.outlook(asks(2)))) == {WhyNoNode.NO_SUCH_MACHINE}
