"""What users read of kube-scheduler's own text."""

from __future__ import annotations

import pytest

from gpuspawner.messages import failure
from gpuspawner.messages.unscheduled import why
from gpuspawner.troubles.giving_up import GivenUp, StartPhase
from gpuspawner.troubles.trouble import Kind, Trouble

GPUS = "No suitable machine has enough free resources of this kind: GPU."
DISK = "No machine can use the disk of your server right now."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", GPUS),
        (
            (
                "0/9 nodes are available: 2 Insufficient memory, 4 Insufficient nvidia.com/gpu, "
                "3 node(s) had untolerated taint {nvidia.com/gpu: present}. preemption: 0/9 nodes "
                "are available: 9 Preemption is not helpful for scheduling."
            ),
            GPUS,
        ),
        (
            "0/2 nodes are available: 1 Insufficient memory, 1 Insufficient cpu.",
            "No suitable machine has enough free memory.",
        ),
        (
            "0/2 nodes are available: 2 Insufficient ephemeral-storage.",
            "No suitable machine has enough free disk space.",
        ),
        (
            "0/2 nodes are available: 2 Insufficient cpu.",
            "No suitable machine has enough free CPU.",
        ),
        (
            "0/2 nodes are available: 1 Too many pods, 1 node(s) were unschedulable.",
            "Every suitable machine already runs as many servers as it can.",
        ),
        ("0/2 nodes are available: 2 node(s) had volume node affinity conflict.", DISK),
        (
            "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
            DISK,
        ),
        (
            "Scheduling is blocked due to non-empty scheduling gates",
            "Your server is still held back by another part of the cluster.",
        ),
        ("0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.", ""),
        ("the plugin of another scheduler says no", ""),
        ("", ""),
    ],
)
def test_the_scarcest_is_named_and_what_only_administrators_know_isnt(text: str, said: str) -> None:
    assert why(text) == said


def test_a_start_that_gets_no_node_in_time_says_why() -> None:
    text = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    failed = GivenUp(Trouble(Kind.UNSCHEDULABLE, texts=(text,)), StartPhase.SCHEDULED)

    assert failure(failed).text == (
        f"The cluster didn't find a machine for your server in time. {GPUS} "
        "Please try again later, or tell your administrator."
    )


def test_a_hostile_resource_stays_text() -> None:
    text = "0/1 nodes are available: 1 Insufficient example.com/<b>{0}."
    failed = GivenUp(Trouble(Kind.UNSCHEDULABLE, texts=(text,)), StartPhase.SCHEDULED)

    assert "<b>" not in failure(failed).html
