"""Why a start doesn't come further."""

from __future__ import annotations

import pytest

from gpuspawner import messages
from gpuspawner.messages.causes import cause
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.types import Accelerator
from gpuspawner.troubles.giving_up import GivenUp
from gpuspawner.troubles.trouble import About, Exit, Kind, Trouble

T4 = Accelerator("t4", "NVIDIA T4", "nvidia.com/gpu", counts=(1, 2))


def missing(granted: int, visible: int) -> Trouble:
    about = About(granted=granted, visible=visible)
    said = Exit(67, last_words="gpuspawner: said")
    return Trouble(Kind.GPUS_MISSING, about, is_final=True, exit=said)


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_of_trouble_has_a_sentence(kind) -> None:
    assert cause(Trouble(kind)).endswith(".")


@pytest.mark.parametrize(
    ("granted", "visible", "said"),
    [
        (2, 1, "The machine should have given your server 2 × NVIDIA T4, but only 1 is visible."),
        (2, 0, "The machine should have given your server 2 × NVIDIA T4, but none is visible."),
        (0, 0, "The machine hasn't given your server its GPUs."),
        (1, 3, "The machine hasn't given your server its GPUs."),
    ],
)
def test_missing_gpus_are_told_with_their_model(granted, visible, said) -> None:
    assert cause(missing(granted, visible), Grant(T4, 2)) == said


@pytest.mark.parametrize(
    ("granted", "visible", "said"),
    [
        (1, 0, "The machine should have given your server 1 GPU, but none is visible."),
        (8, 7, "The machine should have given your server 8 GPUs, but only 7 are visible."),
    ],
)
def test_missing_gpus_of_a_profile_are_told_without_a_model(granted, visible, said) -> None:
    assert cause(missing(granted, visible)) == said


def test_missing_gpus_are_no_last_words_of_the_server() -> None:
    message = messages.failure(GivenUp(missing(1, 0)))

    assert message.text == (
        "The machine should have given your server 1 GPU, but none is visible."
        " Please start your server again; it may get another machine."
    )
