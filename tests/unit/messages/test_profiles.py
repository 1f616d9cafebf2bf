"""Sentences about KubeSpawner's profiles."""

from __future__ import annotations

import pytest

from gpuspawner import messages
from gpuspawner.offers import Accelerator
from gpuspawner.policy import Grant
from gpuspawner.preflight.decision import Reason, Refuse, Room

GPU = "nvidia.com/gpu"
BUSY = Refuse(
    Grant(Accelerator("gpu", "GPU", GPU), 1),
    Reason.BUSY,
    gpus=Room(GPU, asked=1, most_free=0, free=0, most=4, total=8),
)


@pytest.mark.parametrize(
    ("resource", "name"),
    [
        ("nvidia.com/gpu", "GPU"),
        ("amd.com/gpu", "GPU"),
        ("gpu.intel.com/i915", "GPU"),
        ("nvidia.com/gpu.shared", "shared GPU"),
        ("nvidia.com/mig-1g.5gb", "MIG slice 1g.5gb"),
        ("example.com/fpga", "example.com/fpga"),
    ],
)
def test_a_device_has_a_name_for_users(resource: str, name: str) -> None:
    assert messages.device(resource) == name


def test_a_profile_is_named_with_its_choices() -> None:
    assert messages.profile_named("GPU") == "“GPU”"
    assert messages.profile_named("GPU", "4", "64 GB") == "“GPU” with “4”, “64 GB”"


def test_a_refusal_names_the_profile_the_reason_and_the_alternatives() -> None:
    message = messages.profile_refused(BUSY, "“<b>”", ["“CPU”", "“T4”"])

    assert message.text == (
        "“<b>” can't start right now. No GPU is free right now: all 8 are in use. "
        "You can start “CPU” or “T4” instead."
    )
    assert message.html.startswith("<strong>“&lt;b&gt;” can&#39;t start right now.</strong> No GPU")


def test_a_refusal_without_alternatives_says_what_to_do() -> None:
    text = messages.profile_refused(BUSY, "“GPU”", []).text

    assert text.endswith("all 8 are in use. Please try again a little later.")


def test_without_profiles_the_message_is_the_usual_one() -> None:
    assert messages.profile_refused(BUSY, "", []) == messages.refusal(BUSY)
