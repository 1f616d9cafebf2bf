"""The text of an accelerator's availability."""

import pytest

from gpuspawner.messages.availability import StateText, state_text
from gpuspawner.offers.types import Accelerator
from gpuspawner.policies.limits import OfferKind, OverLimit, Standing, Withheld
from gpuspawner.policies.policies import Limit, Measure, Per, Policy, What
from gpuspawner.preflight.availability import Availability, State
from gpuspawner.preflight.decision import CanScaleUp, ResourceRoom
from gpuspawner.scaling.outlook import MayScaleUp, Obstacle, Source, WhyNoNode

T4 = Accelerator("t4", "T4", "nvidia.com/gpu")
EXPLAINED = Policy("course", explanation="Ask first")


def reached(per, of="", group=""):
    limit = Limit(per, Measure(What.GPUS, of), 2)
    return OverLimit(Standing(Policy("course"), limit, group, 2), 1)


def gpus(most_free, free, total, asked=1):
    return ResourceRoom("nvidia.com/gpu", asked, most_free, free, 4, total)


SENTENCES = {
    StateText("Free", "4 of 4 free"): Availability(T4, State.FREE, gpus(4, 4, 4)),
    StateText("Free", "5 of 8 free, at most 2 on one machine"): Availability(
        T4, State.FREE, gpus(2, 5, 8)
    ),
    StateText("Free"): Availability(None, State.FREE),
    StateText("In use", "the only one is in use"): Availability(T4, State.BUSY, gpus(0, 0, 1)),
    StateText("In use", "all 3 are in use"): Availability(T4, State.BUSY, gpus(0, 0, 3)),
    StateText("In use", "none is free right now"): Availability(T4, State.BUSY, gpus(0, 0, 0)),
    StateText("In use", "3 of 8 free, at most 1 on one machine"): Availability(
        T4, State.BUSY, gpus(1, 3, 8, asked=2)
    ),
    StateText("Full", "2 of 4 free, but with too little memory or CPU"): Availability(
        T4, State.BUSY, gpus(2, 2, 4), short_of="memory"
    ),
    StateText("Full", "2 of 4 free, but no machine has room right now"): Availability(
        T4, State.BUSY, gpus(2, 2, 4), short_of="pods"
    ),
    StateText("In use", "2 of 4 free, but your server can't use them right now"): Availability(
        T4, State.BUSY, gpus(2, 2, 4)
    ),
    StateText("In use", "your server can't start right now"): Availability(None, State.BUSY),
    StateText("Full", "2 of 4 free, but no github.com/fuse is free"): Availability(
        T4, State.BUSY, gpus(2, 2, 4), short_of="github.com/fuse"
    ),
    StateText("In use", "all 4 are in use"): Availability(
        T4, State.BUSY, gpus(0, 0, 4), short_of="nvidia.com/gpu"
    ),
    StateText("Full", "no machine has room right now"): Availability(
        None, State.BUSY, short_of="cpu"
    ),
    StateText("New machine", "takes about 8 minutes to start"): Availability(
        T4, State.CAN_SCALE_UP, gpus(0, 0, 0), CanScaleUp(0, 4, 8)
    ),
    StateText("New machine", "takes a few minutes"): Availability(
        T4, State.CAN_SCALE_UP, gpus(0, 0, 0), CanScaleUp(0, 4, None)
    ),
    StateText("Perhaps", "no machine is free, but one may be added"): Availability(
        None, State.MAY_SCALE_UP, None, MayScaleUp(Source.NODES)
    ),
    StateText("Not available", "the cloud provider has none right now"): Availability(
        T4, State.ABSENT, gpus(0, 0, 0), obstacles=(Obstacle(WhyNoNode.STOCK_OUT),)
    ),
    StateText("Not available", "no machine can be added for it right now"): Availability(
        T4, State.ABSENT, gpus(0, 0, 0), obstacles=(Obstacle(WhyNoNode.LIMIT),)
    ),
    StateText("Offline", "its machines are out of service right now"): Availability(
        T4, State.AWAY, gpus(0, 0, 0)
    ),
    StateText("Not available", "no machine here can provide it"): Availability(
        T4, State.ABSENT, gpus(0, 0, 0)
    ),
    StateText("Limit reached", "you're using 2 of your 2 GPUs; stop a server first"): Availability(
        T4, State.LIMITED, gpus(4, 4, 4), denial=reached(Per.USER)
    ),
    StateText("Limit reached", "you're using 2 of your 2; stop a server first"): Availability(
        T4, State.LIMITED, gpus(4, 4, 4), denial=reached(Per.USER, "t4")
    ),
    StateText("Limit reached", "you're using 2 of your 2 × GPU; stop a server first"): Availability(
        T4, State.LIMITED, gpus(4, 4, 4), denial=reached(Per.USER, T4.resource)
    ),
    StateText("Limit reached", "the group ml uses 2 of its 2 GPUs"): Availability(
        T4, State.LIMITED, gpus(4, 4, 4), denial=reached(Per.GROUP, group="ml")
    ),
    StateText("Not offered", "Ask first."): Availability(
        T4, State.WITHHELD, denial=Withheld(EXPLAINED, OfferKind.ACCELERATOR, "t4")
    ),
    StateText("Not offered", "it isn't offered to you"): Availability(
        T4, State.WITHHELD, denial=Withheld(Policy("c"), OfferKind.PROFILE, "t4")
    ),
    StateText("Not offered", "the limit is 2 GPUs"): Availability(
        T4, State.WITHHELD, denial=OverLimit(reached(Per.SERVER).standing, 4)
    ),
    StateText("Checking", "still reading the cluster"): Availability(T4, State.READING),
    StateText("Unknown", "we can't check right now"): Availability(T4, State.UNKNOWN),
}


@pytest.mark.parametrize(("words", "row"), SENTENCES.items(), ids=str)
def test_an_availability_is_a_word_with_figures(words, row):
    assert state_text(row) == words
