"""What is told about an accelerator before it is chosen."""

import pytest

from gpuspawner.availability import Availability, State
from gpuspawner.messages import Standing, standing
from gpuspawner.offers import Accelerator
from gpuspawner.preflight.decision import CanScaleUp, Room

T4 = Accelerator("t4", "T4", "nvidia.com/gpu")


def gpus(most_free, free, total, asked=1):
    return Room("nvidia.com/gpu", asked, most_free, free, 4, total)


SENTENCES = [
    (Availability(T4, State.FREE, gpus(4, 4, 4)), Standing("Free", "4 of 4 free")),
    (
        Availability(T4, State.FREE, gpus(2, 5, 8)),
        Standing("Free", "5 of 8 free, at most 2 on one machine"),
    ),
    (Availability(None, State.FREE), Standing("Free")),
    (Availability(T4, State.BUSY, gpus(0, 0, 1)), Standing("In use", "the only one is in use")),
    (Availability(T4, State.BUSY, gpus(0, 0, 4)), Standing("In use", "all 4 are in use")),
    (Availability(T4, State.BUSY, gpus(0, 0, 0)), Standing("In use", "none is free right now")),
    (
        Availability(T4, State.BUSY, gpus(1, 3, 8, asked=2)),
        Standing("In use", "3 of 8 free, at most 1 on one machine"),
    ),
    (
        Availability(T4, State.BUSY, gpus(2, 2, 4)),
        Standing("Full", "2 of 4 free, but too little memory or CPU beside them"),
    ),
    (Availability(None, State.BUSY), Standing("Full", "no machine has room right now")),
    (
        Availability(T4, State.CAN_SCALE_UP, gpus(0, 0, 0), CanScaleUp(0, 4, 8)),
        Standing("New machine", "ready in about 8 minutes"),
    ),
    (
        Availability(T4, State.AWAY, gpus(0, 0, 0)),
        Standing("Away", "its machines are out of service right now"),
    ),
    (
        Availability(T4, State.ABSENT, gpus(0, 0, 0)),
        Standing("Not here", "no machine here has it at the moment"),
    ),
    (Availability(T4, State.READING), Standing("Looking", "still reading the cluster")),
    (
        Availability(T4, State.UNKNOWN),
        Standing("Unknown", "whether it is free cannot be told right now"),
    ),
]


@pytest.mark.parametrize(("row", "words"), SENTENCES, ids=range(len(SENTENCES)))
def test_a_state_is_told_in_a_word_and_in_figures(row, words):
    assert standing(row) == words
