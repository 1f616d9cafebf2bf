"""Why a start doesn't come further."""

import pytest

from gpuspawner import messages
from gpuspawner.messages.causes import cause
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.types import Accelerator
from gpuspawner.troubles.giving_up import GivenUp
from gpuspawner.troubles.trouble import About, Exit, Kind, Trouble

T4 = Accelerator("t4", "NVIDIA T4", "nvidia.com/gpu", counts=(1, 2))


def missing(granted, visible):
    about = About(granted=granted, visible=visible)
    said = Exit(67, last_words="gpuspawner: said")
    return Trouble(Kind.GPUS_MISSING, about, is_final=True, exit=said)


TOO_FEW = "The machine should have given your server"
PROFILE = Grant()  # whose GPUs have no model


@pytest.mark.parametrize(
    ("granted", "visible", "grant", "said"),
    [
        (2, 1, Grant(T4, 2), f"{TOO_FEW} 2 × NVIDIA T4, but only 1 is visible."),
        (2, 0, Grant(T4, 2), f"{TOO_FEW} 2 × NVIDIA T4, but none is visible."),
        (0, 0, Grant(T4, 2), "The machine hasn't given your server its GPUs."),
        (1, 3, Grant(T4, 2), "The machine hasn't given your server its GPUs."),
        (8, 7, PROFILE, f"{TOO_FEW} 8 GPUs, but only 7 are visible."),
    ],
)
def test_missing_gpus_are_told_with_their_model(granted, visible, grant, said):
    assert cause(missing(granted, visible), grant) == said


def test_missing_gpus_are_no_last_words_of_the_server():
    message = messages.failure(GivenUp(missing(1, 0)))

    assert message.text == (
        "The machine should have given your server 1 GPU, but none is visible."
        " Please start your server again; it may get another machine."
    )
