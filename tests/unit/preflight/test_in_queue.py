"""The preflight asks a pod's queue first, and lets Kueue decide about all that may be."""

from dataclasses import replace
from unittest.mock import Mock

import pytest

from gpuspawner.kube.kueue import ADMISSION, QUEUE
from gpuspawner.kueue import queue_capacity
from gpuspawner.offers.grant import Grant
from gpuspawner.preflight.decision import InQueue, Reason, Refuse, Start
from gpuspawner.preflight.kueue import Closed, Never, PlaceInQueue, WhyClosed
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.preflight.proposed_pod import Proposal
from tests.unit.makers.admissions import OFFERS, NoAnswer
from tests.unit.makers.kueue_worlds import flavor, known, pool, queue, workload
from tests.unit.makers.worlds import (
    A100,
    GPU,
    NAMESPACE,
    Instead,
    StillView,
    is_unknown,
    labelled,
    node,
    pod,
    preflight_on,
    refused,
)

pytestmark = pytest.mark.usefixtures("clock")

LABELLED = {"labels": {QUEUE: "gpus"}}
GATES = [{"name": ADMISSION}, {"name": "kueue.x-k8s.io/topology"}]
NODES = flavor("a100", nodeLabels={"gpu": "a100"})
FOUR = ("Node", node("n", 4))
OTHER = ("Pod", pod("other", 4, on="n"))


def quota(gpus, used=0):
    return pool("team-a", {"nominalQuota": str(gpus)}, names=("a100",), used=used)


def in_queue(gpus=1, user="ann", **spec):
    made = pod(f"jupyter-{user}", gpus, **spec)
    made["metadata"] |= LABELLED
    return Proposal(NAMESPACE, f"jupyter-{user}", made, Grant(A100, gpus))


def viewed(*objects, on=(FOUR,)):
    """A view of a queue and Kueue's other objects, and of nodes."""
    view = StillView(*on)
    known(queue(), *objects, store=view.queues)
    return view


def of_queue(*objects):
    """A preflight on a node of four GPUs, which a queue's only flavor has."""
    return Preflight(viewed(NODES, *objects))


def place_in_queue(decision):
    """The queue in which a pod starts; None if it doesn't start in one."""
    return decision.queue if isinstance(decision, Start) else None


def nodes_say(decision):
    """What the nodes say of a pod that starts in a queue."""
    [said] = [it.nodes for it in decision.notes if isinstance(it, InQueue)]
    return said


@pytest.mark.parametrize("used", [0, 2])
async def test_whether_kueue_has_quota_or_not_the_server_starts_and_keeps_no_room(used):
    preflight = of_queue(quota(2, used=used), workload("w", queue="gpus"))

    decision = await preflight.reserving.take(in_queue())

    nodes = Start(in_queue().grant)
    assert decision == Start(in_queue().grant, (InQueue(PlaceInQueue("gpus", "team-a", 1), nodes),))
    assert len(preflight.reservations) == 0


async def test_nodes_without_room_are_no_reason_for_a_no():
    """Kueue may admit the server later."""
    preflight = Preflight(viewed(NODES, quota(2), on=(FOUR, OTHER)))

    decision = await preflight.reserving.take(in_queue())

    assert place_in_queue(decision) == PlaceInQueue("gpus", "team-a", 0)
    assert refused(nodes_say(decision)) is Reason.BUSY


async def test_a_wait_for_quota_says_nothing_against_room_on_the_nodes():
    start = of_queue(quota(2)).decider.check(in_queue())

    assert start.seconds_to_make_room == 0


async def test_what_is_unknown_of_the_nodes_stays_unknown_behind_a_queue():
    gated = in_queue(schedulingGates=[*GATES, {"name": "example.com/mine"}])
    start = of_queue(quota(2)).decider.check(gated)

    assert start.seconds_to_make_room is None
    assert place_in_queue(start)


async def test_who_waits_for_quota_is_refused_if_no_node_could_ever_hold_the_server():
    decision = of_queue(quota(8, used=8)).decider.check(in_queue(8))

    assert refused(decision) is Reason.IMPOSSIBLE


async def test_what_the_queue_could_never_give_is_refused_with_the_largest_that_fits():
    preflight = of_queue(quota(2))
    proposal = in_queue(4)

    decision = await preflight.begin(proposal, Kueue(manages=True))

    assert (refused(decision), decision.queue) == (Reason.QUOTA, Never("gpus", GPU, 4, 2))
    found = await preflight.with_alternatives(
        decision, proposal, Labelled(OFFERS), Kueue(manages=True)
    )
    assert [it.grant.gpus for it in found.alternatives] == [2, 0]


class Labelled(Instead):
    """Variants that wait in the same queue."""

    def variant(self, request):
        grant, plain = super().variant(request)
        return grant, {**plain, "metadata": {**plain["metadata"], **LABELLED}}


async def test_a_stopped_queue_takes_nobody():
    decision = of_queue(queue(stopPolicy="Hold"), quota(2)).decider.check(in_queue())

    closed = Closed("gpus", WhyClosed.STOPPED)
    assert (refused(decision), decision.queue) == (Reason.NOT_ADMITTED, closed)


class Kueue:
    """Admission as Kueue's webhook changes pods, or leaves those alone that aren't its own."""

    def __init__(self, *, manages):
        self.gates = GATES if manages else []
        self.asked = 0

    async def admit(self, namespace, pod):
        assert namespace == NAMESPACE
        self.asked += 1
        return {**pod, "spec": {**pod["spec"], "schedulingGates": self.gates}}


@pytest.mark.parametrize("ask", [Preflight.begin, Preflight.foretell])
@pytest.mark.parametrize(
    ("admission", "kind"),
    [(Kueue(manages=True), Refuse), (Kueue(manages=False), Start), (NoAnswer(), Start)],
    ids=["Kueue holds it back", "Kueue leaves it alone", "nobody knows"],
)
async def test_only_pods_that_kueue_surely_holds_back_need_its_quota(admission, kind, ask):
    preflight = of_queue(quota(0))

    assert isinstance(await ask(preflight, in_queue(), admission), kind)


@pytest.mark.parametrize("ask", [Preflight.begin, Preflight.foretell])
async def test_the_nodes_decide_about_pods_that_kueue_leaves_alone(ask):
    preflight = Preflight(viewed(NODES, quota(2), on=(FOUR, OTHER)))

    decision = await ask(preflight, in_queue(), Kueue(manages=False))

    assert refused(decision) is Reason.BUSY


async def test_admission_is_asked_only_until_it_has_shown_that_kueue_holds_pods_back():
    preflight, managed = of_queue(quota(2)), Kueue(manages=True)
    for user in ("ann", "bob"):
        assert place_in_queue(await preflight.foretell(in_queue(user=user), managed))
    assert managed.asked == 1

    unmanaged = Kueue(manages=False)
    assert await preflight.confirm(in_queue(), unmanaged) == Start(in_queue().grant)
    for user in ("ann", "bob"):
        assert not place_in_queue(await preflight.foretell(in_queue(user=user), unmanaged))
    assert unmanaged.asked == 3


class DefaultQueue(Kueue):
    """Admission as Kueue's webhook puts pods that name no queue into a namespace's default one."""

    async def admit(self, namespace, pod):
        gated = await super().admit(namespace, pod)
        return {**gated, "metadata": {**pod["metadata"], **LABELLED}}


async def test_who_gets_the_default_queue_waits_there_however_full_the_nodes_are():
    preflight = Preflight(viewed(NODES, quota(2, used=2), on=(FOUR, OTHER)))
    admission = DefaultQueue(manages=True)

    for user in ("ann", "bob"):
        made = Proposal(NAMESPACE, f"jupyter-{user}", pod(f"jupyter-{user}"), Grant(A100, 1))
        assert place_in_queue(await preflight.begin(made, admission))


async def test_kueue_s_gates_leave_a_verdict():
    own = in_queue(schedulingGates=GATES)

    assert nodes_say(of_queue(quota(2)).decider.check(own)) == Start(own.grant)


async def test_without_rights_kueue_decides_and_nobody_is_refused():
    found = preflight_on(FOUR).decider.check(in_queue(8, schedulingGates=GATES))

    assert place_in_queue(found) == PlaceInQueue("gpus")
    assert is_unknown(nodes_say(found))


async def test_a_pod_that_has_its_quota_is_not_asked_for_it_again():
    has_it = replace(in_queue(), is_admitted=True)

    assert of_queue(quota(0)).decider.check(has_it) == Start(has_it.grant)


TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}
TOLERANT = flavor("a100", tolerations=[{"key": "team", "operator": "Exists"}])


async def test_what_only_a_flavor_lets_onto_a_tainted_node_isn_t_impossible():
    tainted = ("Node", node("a", 4, taints=[TAINT]))
    preflight = Preflight(viewed(TOLERANT, quota(8), on=(tainted,)))

    assert nodes_say(preflight.decider.check(in_queue(3))) == Start(in_queue(3).grant)
    [other] = preflight.decider.alternatives(in_queue(8), Labelled(OFFERS))[:1]
    assert other.grant.gpus == 4


async def test_no_alternative_is_more_than_the_queue_could_give():
    found = of_queue(quota(1)).decider.alternatives(in_queue(4), Labelled(OFFERS))

    assert [it.grant.gpus for it in found] == [1, 0]


@pytest.mark.parametrize(
    "spec",
    [
        {"admissionChecksStrategy": {"admissionChecks": [{"name": "nodes"}]}},
        {"admissionChecks": ["nodes"]},
    ],
)
async def test_an_admission_check_may_bring_the_node_that_no_node_is_now(spec):
    team = pool("team-a", {"nominalQuota": "8"}, names=("a100",), **spec)

    decision = of_queue(team).decider.check(in_queue(8))

    assert place_in_queue(decision) == PlaceInQueue("gpus", "team-a", 0)
    assert is_unknown(nodes_say(decision))


async def test_a_pod_that_exists_is_judged_with_the_labels_that_kueue_has_given_it():
    view = viewed(NODES, quota(8))
    preflight, sent = Preflight(view), replace(in_queue(nodeSelector={}), is_admitted=True)
    assert preflight.decider.check_sent(sent) == Start(sent.grant)

    view.put("Pod", pod("jupyter-ann", 1, nodeSelector={"gpu": "other"}))

    assert refused(preflight.decider.check_sent(sent)) is Reason.IMPOSSIBLE


async def test_that_the_nodes_with_room_share_gpus_is_no_reason_for_a_no_if_others_are_busy():
    shared = labelled(node("s", 4), {f"{GPU}.sharing-strategy": "mps"})
    on = (("Node", shared), FOUR, OTHER)

    assert place_in_queue(Preflight(viewed(NODES, quota(8), on=on)).decider.check(in_queue(2)))
    assert refused(Preflight(viewed(NODES, quota(8), on=on[:1])).decider.check(in_queue(8)))


def test_the_quotas_of_a_queue_are_read_once_for_all_alternatives_of_a_refusal(monkeypatch):
    preflight = of_queue(quota(8))
    reads = Mock(side_effect=queue_capacity.quotas)
    monkeypatch.setattr(queue_capacity, "quotas", reads)
    preflight.decider.check(in_queue(1))
    before = reads.call_count

    preflight.decider.check(in_queue(2))

    assert 0 < before == reads.call_count
