"""Lines for administrators in the hub's log."""

import pytest

from gpuspawner.cluster.health import Unreachable
from gpuspawner.messages.administrators import explain_refusal, explain_unknown
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.types import Accelerator
from gpuspawner.preflight.decision import (
    AfterPreemption,
    Reason,
    Refuse,
    Start,
    TaintedNodes,
    UnknownRules,
    ViewNotLive,
)

A100 = Accelerator("a100", "A100", "nvidia.com/gpu")


def test_administrators_read_why_room_is_unknown():
    notes = (UnknownRules(("a", "b")), ViewNotLive(Unreachable("x")), AfterPreemption())

    assert explain_unknown(Start(Grant(), notes)) == (
        "Room for the pod is unknown: a; b",
        (
            "Room for the pod is unknown. The hub can't read the cluster (x); the hub starts "
            "servers without checking for room until it can."
        ),
    )


@pytest.mark.parametrize(("value", "taint"), [("physics", "team=physics"), ("", "team")])
def test_administrators_read_the_schedulers_words_and_the_missing_taints(value, taint):
    decision = Refuse(
        Grant(A100, 2),
        Reason.IMPOSSIBLE,
        taints=(TaintedNodes("team", value, "NoSchedule", 3),),
        scheduler_message="0/3 nodes are available: 3 node(s) had untolerated taint(s).",
    )

    assert explain_refusal(decision) == (
        "Refused (impossible; 2 × a100): 0/3 nodes are available: 3 node(s) had untolerated "
        f"taint(s); 3 node(s) have the taint {taint}:NoSchedule, which the pod doesn't tolerate"
    )


def test_a_refusal_about_which_the_scheduler_says_nothing_ends_with_what_was_asked_for():
    assert explain_refusal(Refuse(Grant(), Reason.TAKEN)) == "Refused (taken; no accelerator)"
