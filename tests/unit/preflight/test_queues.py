"""The preflight asks Kueue's quotas first, and the nodes second."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuspawner.kube.objects import convert
from gpuspawner.kueue.judging import Closed, Never, Why
from gpuspawner.kueue.places import Line
from gpuspawner.kueue.pods import ADMISSION, QUEUE
from gpuspawner.policy import Grant
from gpuspawner.preflight.admitted import AdmittedPreflight
from gpuspawner.preflight.decision import InQueue, Reason, Refuse, Start, UnknownRules
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.preflight.proposal import Proposal
from tests.unit.kueue.worlds import Plain, flavor, known, pool, queue, workload
from tests.unit.preflight.admissions import OFFERS, NoAnswer
from tests.unit.preflight.worlds import (
    A100,
    GPU,
    NAMESPACE,
    Instead,
    StillView,
    node,
    pod,
)

LABELLED = {"labels": {QUEUE: "gpus"}}
GATES = [{"name": ADMISSION}, {"name": "kueue.x-k8s.io/topology"}]
NODES = flavor("a100", nodeLabels={"gpu": "a100"})


def quota(gpus: int, used: int = 0) -> Plain:
    return pool("team-a", {"nominalQuota": str(gpus)}, names=("a100",), used=used)


def in_queue(gpus: int = 1, **spec: object) -> Proposal:
    made: Any = pod("jupyter-ann", gpus, **spec)
    made["metadata"] |= LABELLED
    return Proposal(NAMESPACE, "jupyter-ann", made, Grant(A100, gpus))


def on(*objects: Plain, gpus: int = 4) -> Preflight:
    view = StillView(("Node", node("n", gpus)))
    view._queues.objects = known(queue(), NODES, *objects)
    return Preflight(view)


def waits(ahead: int = 0, used: int = 2) -> InQueue:
    return InQueue(Line("gpus", "team-a", ahead, GPU, used, 2))


async def test_with_quota_and_room_a_server_starts_and_keeps_its_room() -> None:
    preflight = on(quota(2))

    assert await preflight.begin(in_queue()) == Start(in_queue().grant)
    assert len(preflight.reservations) == 1


async def test_with_quota_but_no_room_a_server_is_refused_as_without_a_queue() -> None:
    preflight = on(quota(2))
    preflight._view.state.put(convert("Pod", pod("other", 4, on="n")))

    decision = await preflight.begin(in_queue())

    assert isinstance(decision, Refuse)
    assert (decision.reason, decision.queue) == (Reason.BUSY, None)


async def test_without_quota_a_server_waits_in_the_queue_and_keeps_no_room() -> None:
    preflight = on(quota(2, used=2), workload("w", queue="gpus"))

    assert await preflight.begin(in_queue()) == Start(in_queue().grant, (waits(ahead=1),))
    assert len(preflight.reservations) == 0


async def test_a_wait_for_quota_says_nothing_against_room_on_the_nodes() -> None:
    start = Start(in_queue().grant, (waits(),))

    assert start.seconds_to_make_room == 0
    assert start.line == waits().line


async def test_who_waits_for_quota_is_refused_if_no_node_could_ever_hold_the_server() -> None:
    decision = on(quota(8, used=8), gpus=4).check(in_queue(8))

    assert isinstance(decision, Refuse)
    assert decision.reason is Reason.IMPOSSIBLE


async def test_what_the_queue_could_never_give_is_refused_with_the_largest_that_fits() -> None:
    preflight = AdmittedPreflight(on(quota(2)))
    proposal = in_queue(4)

    decision = await preflight.begin(proposal, Kueue(manages=True))

    assert isinstance(decision, Refuse)
    assert (decision.reason, decision.queue) == (Reason.QUOTA, Never("gpus", GPU, 4, 2))
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
    view = StillView(("Node", node("n", 4)))
    view._queues.objects = known(queue(stopPolicy="Hold"), NODES, quota(2))

    decision = Preflight(view).check(in_queue())

    assert isinstance(decision, Refuse)
    assert (decision.reason, decision.queue) == (
        Reason.NOT_ADMITTED,
        Closed("gpus", Why.STOPPED),
    )


class Kueue:
    """Admission as Kueue's webhook changes pods, or leaves those alone that aren't its own."""

    def __init__(self, *, manages: bool) -> None:
        self.gates = GATES if manages else []

    async def admit(self, namespace: str, pod: Any) -> Any:
        assert namespace == NAMESPACE
        return {**pod, "spec": {**pod["spec"], "schedulingGates": self.gates}}


@pytest.mark.parametrize(("manages", "kind"), [(True, Refuse), (False, Start)])
async def test_only_pods_that_kueue_holds_back_need_its_quota(manages: bool, kind: type) -> None:
    preflight = AdmittedPreflight(on(quota(0)))

    assert isinstance(await preflight.begin(in_queue(), Kueue(manages=manages)), kind)


async def test_if_nobody_knows_whether_kueue_holds_a_pod_back_its_quota_is_no_reason_for_a_no() -> (
    None
):
    preflight = AdmittedPreflight(on(quota(0)))

    assert isinstance(await preflight.begin(in_queue(), NoAnswer()), Start)


async def test_kueue_s_gates_leave_a_verdict_and_others_do_not() -> None:
    own = in_queue(schedulingGates=GATES)
    other = in_queue(schedulingGates=[*GATES, {"name": "example.com/mine"}])

    assert on(quota(2)).check(own) == Start(own.grant)
    found = on(quota(2)).check(other)
    assert isinstance(found, Start)
    assert isinstance(found.notes[0], UnknownRules)


async def test_without_rights_kueue_decides_and_nobody_is_refused() -> None:
    view = StillView(("Node", node("n", 4)))

    found = Preflight(view).check(in_queue(schedulingGates=GATES))

    reason = UnknownRules(("Kueue decides, and the hub can't read its queues",))
    assert found == Start(in_queue().grant, (reason,))


async def test_a_pod_that_has_its_quota_is_not_asked_for_it_again() -> None:
    has_it = replace(in_queue(), is_admitted=True)

    assert on(quota(0)).check(has_it) == Start(has_it.grant)


async def test_if_another_flavor_has_room_nobody_knows_which_one_kueue_chooses() -> None:
    other = flavor("t4", nodeLabels={"gpu": "t4"})
    two = pool("team-a", {"nominalQuota": "2"}, {"nominalQuota": "2"})
    view = StillView(("Node", node("n", 4)))
    view._queues.objects = known(queue(), other, NODES, two)
    anywhere: Any = pod("jupyter-ann", 1, nodeSelector={})
    anywhere["metadata"] |= LABELLED

    found = Preflight(view).check(Proposal(NAMESPACE, "jupyter-ann", anywhere, Grant(A100, 1)))

    assert isinstance(found, Start)
    assert isinstance(found.notes[0], UnknownRules)
