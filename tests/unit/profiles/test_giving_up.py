"""Admission for a page with many profiles."""

import asyncio

import pytest

from gpuspawner.kube.objects import Manifest
from gpuspawner.preflight.dry_runs import TooManyDryRunsError
from gpuspawner.profiles.giving_up import GivingUp
from tests.unit.makers.hubs import Script

POD: Manifest = {"spec": {"containers": []}}
NO_POD_YET: Manifest = {"spec": None}


async def test_admission_is_asked_as_long_as_it_answers() -> None:
    admission = Script()
    admission.answer = lambda pod: pod
    giving_up = GivingUp(admission)

    assert await giving_up.admit("jhub", POD) == POD
    assert await giving_up.admit("hub", POD) == POD
    assert admission.asked == [("jhub", POD), ("hub", POD)]


async def test_after_a_missing_answer_admission_is_not_asked_again() -> None:
    admission = Script()
    giving_up = GivingUp(admission)
    assert await giving_up.admit("jhub", POD) is None

    admission.answer = lambda pod: pod

    assert await giving_up.admit("jhub", POD) is None
    assert len(admission.asked) == 1


async def test_a_pod_that_cannot_be_made_yet_does_not_count_as_a_missing_answer() -> None:
    admission = Script()
    giving_up = GivingUp(admission)
    assert await giving_up.admit("jhub", NO_POD_YET) is None

    admission.answer = lambda pod: pod

    assert await giving_up.admit("jhub", POD) == POD


async def test_after_too_many_dry_runs_admission_is_not_asked_again() -> None:
    def no_turn(_: Manifest) -> None:
        raise TooManyDryRunsError

    admission = Script()
    admission.answer = no_turn
    giving_up = GivingUp(admission)

    for _ in range(2):
        with pytest.raises(TooManyDryRunsError):
            await giving_up.admit("jhub", POD)
    assert len(admission.asked) == 1


async def test_all_answers_together_get_limited_time() -> None:
    class Slow(Script):
        async def admit(self, namespace: str, pod: Manifest) -> Manifest:
            self.asked.append((namespace, pod))
            await asyncio.Event().wait()
            return pod

    admission = Slow()
    giving_up = GivingUp(admission, seconds=0.01)

    for _ in range(2):
        with pytest.raises(TooManyDryRunsError):
            await giving_up.admit("jhub", POD)
    assert len(admission.asked) == 1
