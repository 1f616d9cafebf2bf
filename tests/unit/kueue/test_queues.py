"""The preflight asks Kueue's quotas first, and the nodes second."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from gpuspawner.kueue.judging import Closed, Never, WhyClosed
from gpuspawner.kueue.places import PlaceInQueue
from gpuspawner.kueue.pods import ADMISSION, QUEUE
from gpuspawner.offers.grant import Grant
from gpuspawner.preflight.admitted import AdmittedPreflight
from gpuspawner.preflight.decision import InQueue, Reason, Refuse, Start, UnknownRules
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.preflight.proposal import Proposal
from tests.unit.makers.admissions import OFFERS, NoAnswer
from tests.unit.makers.kueue_worlds import Plain, flavor, known, pool, queue, workload
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


def quota(gpus: int, used: int = 0) -> Plain:
    return pool("team-a", {"nominalQuota": str(gpus)}, names=("a100",), used=used)


def in_queue(gpus: int = 1, user: str = "ann", **spec: object) -> Proposal:
    made: Any = pod(f"jupyter-{user}", gpus, **spec)
    made["metadata"] |= LABELLED
    return Proposal(NAMESPACE, f"jupyter-{user}", made, Grant(A100, gpus))


def viewed(*objects: Plain, on: Sequence[tuple[str, Any]] = (FOUR,)) -> StillView:
    """A view of a queue and Kueue's other objects, and of nodes."""
    view = StillView(*on)
    known(queue(), *objects, store=view.queues)
    return view


def of_queue(*objects: Plain) -> Preflight:
    """A preflight on a node of four GPUs, which a queue's only flavor has."""
    return Preflight(viewed(NODES, *objects))


def waits(ahead: int = 0, used: int = 2) -> InQueue:
    return InQueue(PlaceInQueue("gpus", "team-a", ahead, GPU, used, 2))


async def test_with_quota_and_room_a_server_starts_and_keeps_its_room() -> None:
    preflight = of_queue(quota(2))

    assert await preflight.begin(in_queue()) == Start(in_queue().grant)
    assert len(preflight.reservations) == 1


async def test_with_quota_but_no_room_a_server_is_refused_as_without_a_queue() -> None:
    preflight = Preflight(viewed(NODES, quota(2), on=(FOUR, OTHER)))

    decision = await preflight.begin(in_queue())

    assert (refused(decision), decision.queue) == (Reason.BUSY, None)


async def test_without_quota_a_server_waits_in_the_queue_and_keeps_no_room() -> None:
    preflight = of_queue(quota(2, used=2), workload("w", queue="gpus"))

    assert await preflight.begin(in_queue()) == Start(in_queue().grant, (waits(ahead=1),))
    assert len(preflight.reservations) == 0


async def test_a_wait_for_quota_says_nothing_against_room_on_the_nodes() -> None:
    start = Start(in_queue().grant, (waits(),))

    assert start.seconds_to_make_room == 0
    assert start.line == waits().line


async def test_who_waits_for_quota_is_refused_if_no_node_could_ever_hold_the_server() -> None:
    decision = of_queue(quota(8, used=8)).check(in_queue(8))

    assert refused(decision) is Reason.IMPOSSIBLE


async def test_what_the_queue_could_never_give_is_refused_with_the_largest_that_fits() -> None:
    preflight = AdmittedPreflight(of_queue(quota(2)))
    proposal = in_queue(4)

    decision = await preflight.begin(proposal, Kueue(manages=True))

    assert (refused(decision), decision.queue) == (Reason.QUOTA, Never("gpus", GPU, 4, 2))
    found = await preflight.with_alternatives(
        decision, proposal, Labelled(OFFERS), Kueue(manages=True)
    )
    assert [it.grant.gpus for it in found.alternatives] == [2, 0]


class Labelled(Instead):
    """Variants that wait in the same queue."""

    def variant(self, request: Any) -> Any:
        made = super().variant(request)
        if made is None:
            return None
        grant, plain = made
        return grant, {**plain, "metadata": {**plain["metadata"], **LABELLED}}


async def test_a_stopped_queue_takes_nobody() -> None:
    decision = of_queue(queue(stopPolicy="Hold"), quota(2)).check(in_queue())

    closed = Closed("gpus", WhyClosed.STOPPED)
    assert (refused(decision), decision.queue) == (Reason.NOT_ADMITTED, closed)


class Kueue:
    """Admission as Kueue's webhook changes pods, or leaves those alone that aren't its own."""

    def __init__(self, *, manages: bool) -> None:
        self.gates = GATES if manages else []

    async def admit(self, namespace: str, pod: Any) -> Any:
        assert namespace == NAMESPACE
        return {**pod, "spec": {**pod["spec"], "schedulingGates": self.gates}}


@pytest.mark.parametrize("ask", [AdmittedPreflight.begin, AdmittedPreflight.foretell])
@pytest.mark.parametrize(
    ("admission", "kind"),
    [(Kueue(manages=True), Refuse), (Kueue(manages=False), Start), (NoAnswer(), Start)],
    ids=["Kueue holds it back", "Kueue leaves it alone", "nobody knows"],
)
async def test_only_pods_that_kueue_surely_holds_back_need_its_quota(admission, kind, ask) -> None:
    preflight = AdmittedPreflight(of_queue(quota(0)))

    assert isinstance(await ask(preflight, in_queue(), admission), kind)


async def test_kueue_s_gates_leave_a_verdict_and_others_do_not() -> None:
    own = in_queue(schedulingGates=GATES)
    other = in_queue(schedulingGates=[*GATES, {"name": "example.com/mine"}])

    assert of_queue(quota(2)).check(own) == Start(own.grant)
    assert is_unknown(of_queue(quota(2)).check(other))


async def test_without_rights_kueue_decides_and_nobody_is_refused() -> None:
    found = preflight_on(FOUR).check(in_queue(schedulingGates=GATES))

    reason = UnknownRules(("Kueue decides, and the hub can't read its queues",))
    assert found == Start(in_queue().grant, (reason,))


async def test_a_pod_that_has_its_quota_is_not_asked_for_it_again() -> None:
    has_it = replace(in_queue(), is_admitted=True)

    assert of_queue(quota(0)).check(has_it) == Start(has_it.grant)


async def test_if_another_flavor_has_room_nobody_knows_which_one_kueue_chooses() -> None:
    other = flavor("t4", nodeLabels={"gpu": "t4"})
    two = pool("team-a", {"nominalQuota": "2"}, {"nominalQuota": "2"})

    assert is_unknown(Preflight(viewed(other, NODES, two)).check(in_queue(nodeSelector={})))


def team(name: str, **spec: object) -> tuple[str, Plain]:
    """A node of a team, with four GPUs."""
    return "Node", labelled(node(name, 4, **spec), {"team": name})


def of_team_a(*nodes: tuple[str, Any], **spec: object) -> Preflight:
    """A queue whose flavor is the nodes of one of two teams."""
    own = flavor("a100", nodeLabels={"gpu": "a100", "team": "a"}, **spec)
    return Preflight(viewed(own, quota(8), on=nodes))


async def test_a_server_keeps_room_only_on_the_nodes_that_its_flavor_gives_it() -> None:
    preflight = of_team_a(team("a"), team("b"))

    assert isinstance(await preflight.begin(in_queue(3, "ann")), Start)
    assert isinstance(await preflight.begin(in_queue(3, "bob")), Refuse)
    elsewhere = pod("jupyter-cyn", 3, nodeSelector={"gpu": "a100", "team": "b"})
    cyn = Proposal(NAMESPACE, "jupyter-cyn", elsewhere, Grant(A100, 3))
    assert await preflight.begin(cyn) == Start(cyn.grant)


async def test_a_server_that_only_its_flavor_lets_onto_a_tainted_node_keeps_its_room() -> None:
    taint = {"key": "team", "value": "a", "effect": "NoSchedule"}
    toleration = {"key": "team", "operator": "Exists"}
    preflight = of_team_a(team("a", taints=[taint]), tolerations=[toleration])

    assert await preflight.begin(in_queue(3, "ann")) == Start(in_queue(3, "ann").grant)
    assert isinstance(await preflight.begin(in_queue(3, "bob")), Refuse)
    [other] = preflight.alternatives(in_queue(8, "cyn"), Labelled(OFFERS))[:1]
    assert other.grant.gpus == 4


async def test_no_alternative_is_on_nodes_that_the_flavor_doesn_t_have() -> None:
    preflight = of_team_a(team("a"), team("b"), ("Pod", pod("other", 4, on="a")))

    found = preflight.alternatives(in_queue(2, "ann"), Labelled(OFFERS))

    assert [it.grant.gpus for it in found] == [0]


CHECKS = {"admissionChecks": [{"name": "nodes"}]}


@pytest.mark.parametrize(
    "spec",
    [
        {"admissionChecksStrategy": CHECKS},
        {"admissionChecks": ["nodes"]},
        {"flavorFungibility": {"whenCanPreempt": "MayStopSearch"}},
    ],
)
async def test_nodes_without_room_are_no_reason_for_a_no_if_kueue_may_find_others(spec) -> None:
    used = pool("team-a", {"nominalQuota": "2"}, {"nominalQuota": "2"}, used=2, **spec)
    t4 = flavor("t4", nodeLabels={"gpu": "t4"})
    preflight = Preflight(viewed(t4, NODES, used, on=(FOUR, OTHER)))

    assert is_unknown(preflight.check(in_queue(nodeSelector={})))


async def test_an_admission_check_may_bring_the_node_that_no_node_is_now() -> None:
    full = pool("team-a", {"nominalQuota": "8"}, names=("a100",), used=8)
    full["spec"]["admissionChecksStrategy"] = CHECKS

    assert of_queue(full).check(in_queue(8)) == Start(
        in_queue(8).grant, (InQueue(PlaceInQueue("gpus", "team-a", 0, GPU, 8, 8)),)
    )


async def test_with_more_flavors_than_are_looked_at_no_node_is_no_reason_for_a_no() -> None:
    names = tuple(f"f{number}" for number in range(20))
    flavors = [flavor(it, nodeLabels={"kind": it}) for it in names]
    many = pool("team-a", *({"nominalQuota": "2"} for _ in names), names=names)

    assert is_unknown(of_queue(many, *flavors).check(in_queue()))
