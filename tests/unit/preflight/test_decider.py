"""Decisions about a pod at one moment, on states that a test sets."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from gpuspawner.kube.autoscaling import NodePool
from gpuspawner.kube.objects import KINDS
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.offers import Offers
from gpuspawner.preflight.decision import (
    AfterPreemption,
    Difference,
    Reason,
    Refuse,
    ResourceRoom,
    Start,
    TaintedNodes,
    UnknownRules,
    Wait,
)
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.scaling.outlook import MayScaleUp, Source
from tests.unit.makers.storage import HOME, STORAGE_KINDS
from tests.unit.makers.worlds import (
    A100,
    GPU,
    NAMESPACE,
    ONE_FREE,
    Instead,
    StillView,
    decider_on,
    having,
    is_unknown,
    labelled,
    node,
    of_pool,
    pod,
    proposal,
    refused,
)

pytestmark = pytest.mark.usefixtures("clock")

ON_OFFER = Offers(accelerators={"a100": A100})


def refusal(decider, what):
    decision = decider.check(what)
    assert isinstance(decision, Refuse), decision
    return decision


def test_a_refusal_says_how_much_is_asked_and_how_much_is_free():
    objects = [*ONE_FREE, ("Node", node("m", 2)), ("Pod", pod("y", 1, on="m"))]

    refused = refusal(decider_on(*objects), proposal("a", 2))

    assert refused.reason is Reason.BUSY
    assert refused.gpus == ResourceRoom(GPU, asked=2, most_free=1, free=2, most=2, total=4)
    assert refused.shortage == refused.gpus
    assert refused.candidates == 2
    assert refused.scheduler_message.startswith(
        "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
    )


def test_if_gpus_are_free_the_shortage_is_what_their_nodes_lack():
    requests = {GPU: "1", "memory": "300Gi"}
    container = {"name": "notebook", "resources": {"requests": requests}}
    hungry = proposal("a", 1, containers=[container])
    full = [("Node", node("full", 1)), ("Pod", pod("y", 1, on="full"))]

    refused = refusal(decider_on(*ONE_FREE, *full), hungry)

    gib = 2**30
    assert refused.gpus == ResourceRoom(GPU, 1, most_free=1, free=1, most=2, total=3)
    assert refused.shortage == ResourceRoom(
        "memory", 300 * gib, 255 * gib, 255 * gib, 256 * gib, 256 * gib
    )


def test_a_taint_in_the_way_is_named():
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    tainted = [("Node", node(name, 2, taints=[taint])) for name in ("n", "m")]

    refused = refusal(decider_on(*tainted), proposal("a"))

    assert refused.reason is Reason.IMPOSSIBLE
    assert refused.taints == (
        TaintedNodes("nvidia.com/gpu", "present", "NoSchedule", nodes=2, large=2),
    )
    assert refused.candidates == 0
    assert refused.shortage is None


def test_nodes_are_not_reserved_if_another_rule_keeps_the_server_off_large_enough_ones():
    reserved = ("Node", node("cp", 4, taints=[{"key": "team", "effect": "NoSchedule"}]))

    no = decide(first_login(), aged(3600), reserved)

    assert (no.reason, no.candidates, no.taints[0].large) == (Reason.IMPOSSIBLE, 1, 1)
    assert not no.is_reserved


def test_away_nodes_have_a_reason_of_their_own():
    refused = refusal(decider_on(("Node", node("n", 2, unschedulable=True))), proposal("a"))

    assert refused.reason is Reason.AWAY
    assert (refused.away, refused.candidates, refused.taints) == (("n",), 0, ())


CILIUM = {"key": "node.cilium.io/agent-not-ready", "effect": "NoExecute"}
WARMING = {"key": "example.com/warming", "effect": "NoSchedule"}
TEAMS = {"key": "team", "effect": "NoExecute"}


def starting(*taints, minutes=1):
    began = (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat()
    made = node("n", 2, taints=list(taints))
    return "Node", {**made, "metadata": {**made["metadata"], "creationTimestamp": began}}


def test_a_free_machine_that_is_getting_ready_is_waited_for_where_nothing_grows_too():
    decision = decider_on(starting(CILIUM)).check(proposal("a"))

    assert decision.scale_up == MayScaleUp(Source.NODES, on_its_way=True)


def test_a_machine_that_will_not_be_ready_for_this_server_is_not_waited_for():
    assert refused(decider_on(starting(CILIUM, TEAMS)).check(proposal("a")))


def test_a_machine_that_does_not_get_ready_in_time_is_away_and_not_reserved():
    refused = refusal(decider_on(starting(CILIUM, minutes=16)), proposal("a"))

    assert (refused.reason, refused.taints) == (Reason.AWAY, ())


def test_the_view_reads_from_node_pools_which_taints_go():
    view = StillView(starting(WARMING))
    decider = Preflight(view).decider
    assert isinstance(decider.check(proposal("a")), Refuse)
    template = {"spec": {"startupTaints": [WARMING], "taints": [TEAMS]}}
    plain = {"metadata": {"name": "k"}, "spec": {"template": template}}
    view.autoscalers.put(msgspec.convert(plain, NodePool))
    view.wake()

    assert isinstance(decider.check(proposal("a")), Wait)


SHARED = labelled(node("n", 4), {f"{GPU}.sharing-strategy": "mps"})


def test_several_shares_of_a_gpu_are_refused_where_a_plugin_gives_only_one():
    decider = decider_on(("Node", SHARED))

    no = refusal(decider, proposal("a", 4))

    assert (no.reason, no.one_share) == (Reason.IMPOSSIBLE, True)
    assert no.gpus == ResourceRoom(GPU, asked=4, most_free=4, free=4, most=4, total=4)
    instead = decider.alternatives(proposal("a", 4), Instead(ON_OFFER))
    assert [it.grant.gpus for it in instead] == [1, 0]


def test_several_shares_are_refused_for_good_though_others_have_them():
    others = [("Pod", pod(f"x{number}", on="n")) for number in range(3)]

    no = refusal(decider_on(("Node", SHARED), *others), proposal("a", 2))

    assert (no.reason, no.one_share) == (Reason.IMPOSSIBLE, True)


@pytest.mark.parametrize(
    "other",
    [
        ("Node", node("m", 2)),
        ("Node", labelled(node("m", 2), {f"{GPU}.sharing-strategy": "time-slicing"})),
        ("Pod", pod("two", 2, on="n")),
    ],
    ids=["another node", "a node whose setting decides", "a pod that has several"],
)
def test_several_shares_are_no_reason_to_refuse_a_server_that_a_plugin_may_give_them(other):
    assert decider_on(("Node", SHARED), other).check(proposal("a", 2)) == Start(
        proposal("a", 2).grant
    )


def test_several_shares_wait_for_a_node_that_gives_them_if_others_are_taken():
    one_each = [("Pod", pod(f"y{number}", on="n")) for number in range(3)]
    taken = [("Node", SHARED), ("Node", node("m", 2)), ("Pod", pod("x", 2, on="m")), *one_each]

    assert refusal(decider_on(*taken), proposal("a", 2)).reason is Reason.BUSY


def test_what_the_hub_s_own_code_may_still_place_is_not_refused_for_its_shares():
    what = replace(proposal("a", 2), is_open=True)

    assert decider_on(("Node", SHARED)).check(what) == Start(what.grant)


@pytest.mark.parametrize(
    ("grace", "seconds"),
    [
        ({"terminationGracePeriodSeconds": 0}, 0),
        ({"terminationGracePeriodSeconds": 600}, 600),
        ({}, 30),
    ],
    ids=["a placeholder", "a batch job", "the API server's default"],
)
def test_a_start_by_preemption_says_how_long_others_may_take_to_end(grace, seconds):
    others = pod("x", 1, on="n", priority=-10, **grace)

    decision = decider_on(("Node", node("n", 1)), ("Pod", others)).check(proposal("a"))

    assert decision == Start(proposal("a").grant, (AfterPreemption(seconds),))


class WithImage(Instead):
    def variant(self, request):
        grant, made = Grant(A100, request.gpus), pod("a", request.gpus)
        [container] = made["spec"]["containers"]
        container["image"] = "docker.io/library/lab:1"
        return grant, made


@pytest.mark.parametrize(
    ("on", "image", "is_at_hand"),
    [("free", "lab:1", True), ("full", "lab:1", False), ("free", "lab:2", False)],
)
def test_an_alternative_is_at_hand_if_a_node_with_room_has_its_image(on, image, is_at_hand):
    nodes = {"free": node("free", 1), "full": node("full", 2)}
    nodes[on] = having(nodes[on], image)
    objects = [*(("Node", it) for it in nodes.values()), ("Pod", pod("x", 2, on="full"))]

    found = decider_on(*objects).alternatives(proposal("a", 2), WithImage(ON_OFFER))

    assert [it.is_at_hand for it in found if it.grant.gpus == 1] == [is_at_hand]


def test_an_unknown_verdict_lets_the_pod_start_with_a_note():
    what = proposal("a", 1, schedulerName="volcano")
    unknown = UnknownRules(("another scheduler places the pod: volcano",))

    assert decider_on(*ONE_FREE).check(what) == Start(what.grant, (unknown,))


def test_an_undecodable_pod_starts_with_a_note():
    what = Proposal(NAMESPACE, "a", {"spec": {"containers": "many"}}, Grant())

    assert is_unknown(decider_on(*ONE_FREE).check(what))


def test_a_pod_that_no_node_could_hold_does_not_wait_for_one():
    lost = {"metadata": {"name": "c", "namespace": NAMESPACE}, "status": {"phase": "Lost"}}
    home = {"name": "home", "persistentVolumeClaim": {"claimName": "c"}}
    view = StillView(("Node", node("n", 0)), ("PersistentVolumeClaim", lost))
    for kind in KINDS:
        view.state.mark_known(kind)

    assert refusal(Preflight(view).decider, of_pool("a", volumes=[home]))


def test_an_over_committed_node_takes_nothing_from_another():
    shrunk = [("Pod", pod(f"p{i}", 1, on="shrunk")) for i in range(3)]

    decider = decider_on(*ONE_FREE, ("Node", node("shrunk", 1)), *shrunk)

    refused = refusal(decider, proposal("a", 2))

    assert refused.gpus == ResourceRoom(GPU, asked=2, most_free=1, free=1, most=2, total=3)


def test_alternatives_are_judged_as_the_pods_they_would_be():
    [fewer, none] = decider_on(*ONE_FREE).alternatives(proposal("a", 4), Instead(ON_OFFER))

    assert (fewer.grant.gpus, fewer.differences) == (1, (Difference.FEWER_GPUS,))
    assert fewer.gpus == ResourceRoom(GPU, asked=1, most_free=1, free=1, most=2, total=2)
    assert (none.grant, none.differences, none.gpus) == (Grant(), (Difference.NO_GPU,), None)


def test_a_choice_that_policy_denies_is_no_alternative():
    denying = SimpleNamespace(offers=ON_OFFER, variant=lambda _: None)

    assert decider_on(*ONE_FREE).alternatives(proposal("a", 4), denying) == ()


# Homes that don't exist yet: a first login must not be refused for a missing claim


Plain = dict[str, Any]


DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}
DISKS = {
    "metadata": {"name": "disks", "annotations": DEFAULT},
    "provisioner": "disks.example",
    "volumeBindingMode": "WaitForFirstConsumer",
}


def claim(class_name=None, **metadata):
    spec = {"accessModes": ["ReadWriteOnce"]}
    if class_name is not None:
        spec["storageClassName"] = class_name
    return {"metadata": {"name": "claim-a", "namespace": NAMESPACE, **metadata}, "spec": spec}


def knowing_storage(*objects):
    """A preflight on a node with one GPU that knows of these claims, volumes and classes."""
    view = StillView(("Node", node("n", 1)), *objects)
    for kind in STORAGE_KINDS:
        view.state.mark_known(kind)
    return Preflight(view)


def decide(what, *objects):
    return knowing_storage(*objects).decider.check(what)


def first_login(*new_claims, gpus=1):
    return replace(proposal("a", gpus, volumes=[HOME]), new_claims=new_claims)


@pytest.mark.parametrize("named", [claim("disks"), claim()], ids=["its class", "the default"])
def test_a_home_of_a_class_that_waits_for_its_pod_fits(named):
    what = first_login(named)

    assert decide(what, ("StorageClass", DISKS)) == Start(what.grant)


@pytest.mark.parametrize(
    ("new_claims", "objects"),
    [
        ((), []),
        ((claim("nowhere"),), []),
        ((claim(""),), []),
        ((claim(),), []),
        ((), [("PersistentVolumeClaim", claim("disks", deletionTimestamp="2026-01-01T00:00:00Z"))]),
    ],
    ids=["made by a hook", "of a missing class", "of no class", "of no default class", "deleted"],
)
def test_a_claim_that_does_not_exist_yet_is_unknown_and_never_refused(new_claims, objects):
    assert is_unknown(decide(first_login(*new_claims), *objects))


def aged(seconds, class_name=""):
    """Return a claim that was made so many seconds ago."""
    made = datetime.now(UTC) - timedelta(seconds=seconds)
    return "PersistentVolumeClaim", claim(class_name, creationTimestamp=made.isoformat())


DISK = {
    "metadata": {"name": "disk"},
    "spec": {"accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/disk"}},
    "status": {"phase": "Available"},
}
HAND_MADE = "PersistentVolume", DISK


@pytest.mark.parametrize("class_name", ["", "gone", None])
def test_a_claim_that_nothing_provisions_is_refused_only_if_it_is_old(class_name):
    for seconds in (-60, 0, 15, 500):
        assert is_unknown(decide(first_login(), aged(seconds, class_name)))
    assert refused(decide(first_login(), aged(3600, class_name)))


@pytest.mark.parametrize("seconds", [None, 0, 3600], ids=["", "young", "old"])
def test_a_claim_that_may_be_bound_does_not_replace_missing_gpus(seconds):
    made = [] if seconds is None else [aged(seconds)]
    made += [HAND_MADE] if seconds else []
    assert is_unknown(decide(first_login(claim("")), *made))

    refusal = decide(first_login(claim(""), gpus=2), *made)

    assert refusal.shortage.resource == GPU


def test_an_old_claim_that_an_available_volume_can_satisfy_is_never_refused():
    assert is_unknown(decide(first_login(), aged(3600), HAND_MADE))


def test_a_volume_of_a_young_claim_that_is_not_yet_in_view_is_no_reason_to_refuse():
    kind, young = aged(0)
    young["spec"]["volumeName"] = "disk"
    young["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}

    assert is_unknown(decide(first_login(), (kind, young)))


@pytest.mark.parametrize(
    "broken", [{}, {"spec": None}, {"metadata": 3}, {"spec": {}, "metadata": {}}]
)
def test_an_undecodable_claim_is_no_error(broken):
    assert isinstance(decide(first_login(broken), ("StorageClass", DISKS)), Start)


BY_HAND = {
    "metadata": {"name": "local"},
    "provisioner": "kubernetes.io/no-provisioner",
    "volumeBindingMode": "WaitForFirstConsumer",
}


def test_a_claim_whose_volume_somebody_still_makes_is_refused_only_if_it_is_old():
    local = ("StorageClass", BY_HAND)
    assert is_unknown(decide(first_login(claim("local")), local))
    assert is_unknown(decide(first_login(), local, aged(5, "local")))
    assert refused(decide(first_login(), local, aged(3600, "local")))
    assert refused(decide(first_login(claim("local"), gpus=2), local))


def first_logins(*names):
    """Servers whose homes don't exist yet, and that no class makes."""
    made = []
    for name in names:
        home = {"name": "h", "persistentVolumeClaim": {"claimName": name}}
        new = {**claim(""), "metadata": {"name": name, "namespace": NAMESPACE}}
        made.append(replace(proposal(name, volumes=[home]), new_claims=(new,)))
    return made


async def test_two_servers_that_wait_for_claims_are_not_both_promised_the_only_gpu():
    preflight, (first, second) = knowing_storage(), first_logins("a", "b")

    assert is_unknown(await preflight.reserving.take(first))
    assert refused(await preflight.reserving.take(second)) is Reason.TRY_AGAIN


# A pod that names its node never gets to a scheduler: its kubelet decides.

TEAM = [{"key": "team", "value": "a", "effect": "NoSchedule"}]
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {}, "topologyKey": "gpu"}
        ]
    }
}


@pytest.mark.parametrize(
    ("of_node", "of_pod", "of_other"),
    [
        ({"taints": TEAM}, {}, {}),
        ({"unschedulable": True}, {}, {}),
        ({}, {"affinity": APART}, {}),
        ({}, {}, {"affinity": APART}),
        ({}, {"schedulerName": "volcano"}, {}),
    ],
    ids=["taint", "cordon", "anti-affinity", "another's anti-affinity", "another scheduler"],
)
def test_what_only_a_scheduler_reads_keeps_no_pod_off_the_node_that_it_names(
    of_node, of_pod, of_other
):
    other = pod("x", 0, on="n", **of_other)
    what = proposal("a", 1, nodeName="n", **of_pod)
    decider = decider_on(("Node", node("n", 1, **of_node)), ("Pod", other))

    assert decider.check(what) == Start(what.grant)
    assert decider.check(proposal("a", 1, **of_pod)) != Start(what.grant)


@pytest.mark.parametrize(
    ("of_node", "others", "reason"),
    [
        ({"taints": [{**TEAM[0], "effect": "NoExecute"}]}, [], Reason.IMPOSSIBLE),
        ({}, [pod("x", 1, on="n", priority=-10)], Reason.BUSY),
    ],
    ids=["NoExecute", "a pod of lower priority"],
)
def test_its_kubelet_refuses_a_pod_and_no_new_machine_helps(of_node, others, reason):
    free = ("Node", node("free", 1))
    decider = decider_on(("Node", node("n", 1, **of_node)), free, *(("Pod", it) for it in others))

    assert refusal(decider, of_pool("a", nodeName="n", priority=0)).reason is reason
