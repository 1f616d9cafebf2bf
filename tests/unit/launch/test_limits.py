"""Each phase of a start has a limit, and the hub gets their sum."""

from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from gpuspawner.launch.launching import limits, total
from gpuspawner.offers.grant import Grant
from gpuspawner.preflight.decision import AfterPreemption, Start, UnknownRules, Wait
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.scaling.outlook import CanScaleUp
from gpuspawner.start.attempt import Attempt
from gpuspawner.start.source import Choice
from gpuspawner.troubles.giving_up import StartPhase

SPAWNER = SimpleNamespace(
    scheduling_timeout=60, preparing_timeout=600, http_timeout=30, preflight="enforce"
)
UNKNOWN = UnknownRules(("device claims",))


def of(decision):
    choice = Choice(Proposal("jhub", "jupyter-alice", {}, decision.grant))
    return Attempt(choice, decision, starting=300.0)


@pytest.mark.parametrize(
    ("decision", "seconds"),
    [
        (Start(Grant()), 60),
        (Start(Grant(), (AfterPreemption(0),)), 60),
        (Start(Grant(), (AfterPreemption(600),)), 660),
        (Start(Grant(), (UNKNOWN,)), 300),
        (Start(Grant(), (AfterPreemption(600), UNKNOWN)), 300),
        (Wait(Grant(), CanScaleUp(1, 2, 15)), 30 * 60 + 60 + 30),
    ],
    ids=["a promise", "placeholders", "others that end slowly", "unknown", "both", "a new node"],
)
def test_a_pod_gets_the_time_that_its_node_may_take(decision, seconds):
    assert limits(SPAWNER, of(decision))[StartPhase.SCHEDULED] == seconds


def test_a_pod_that_nobody_has_judged_waits_as_long_as_with_kubespawner():
    off = SimpleNamespace(**{**vars(SPAWNER), "preflight": "off"})

    assert limits(off, of(Start(Grant())))[StartPhase.SCHEDULED] == 300


@pytest.mark.parametrize(
    ("configured", "starting", "seconds"),
    [(None, 300.0, 600), (None, 3600.0, 3600), (60.0, 300.0, 60), (900.0, 3600.0, 900)],
)
def test_images_may_take_as_long_as_with_kubespawner_unless_a_limit_is_set(
    configured, starting, seconds
):
    spawner = SimpleNamespace(**{**vars(SPAWNER), "preparing_timeout": configured})
    attempt = replace(of(Start(Grant())), starting=starting)

    assert limits(spawner, attempt)[StartPhase.PREPARED] == seconds


def test_an_infinite_limit_is_a_very_long_timeout_of_the_hub():
    spawner = SimpleNamespace(**{**vars(SPAWNER), "preparing_timeout": float("inf")})

    assert 10**7 < total(limits(spawner, of(Start(Grant())))) < 2**31


def test_the_hub_waits_for_all_phases():
    assert total(limits(SPAWNER, of(Start(Grant())))) == 60 + 600 + 300 + 30


@pytest.mark.parametrize("labels", [{"kueue.x-k8s.io/queue-name": "gpus"}, {}])
def test_nothing_limits_the_wait_in_a_queue_but_only_there(labels):
    attempt = of(Start(Grant()))
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "notebook"}]}}
    choice = Choice(Proposal("jhub", "jupyter-ann", pod, Grant()))
    found = limits(SPAWNER, replace(attempt, choice=choice))

    assert (found[StartPhase.QUEUED] >= 10**8) is bool(labels)
    assert (total(found) >= 10**8) is bool(labels)
    assert found[StartPhase.SCHEDULED] == 60
