"""Profiles of the administrator's in words: what they ask for, and why they do not start."""

from collections.abc import Sequence

from gpuspawner.language import gettext as _
from gpuspawner.messages import words
from gpuspawner.messages.message import Message
from gpuspawner.messages.refusals import refusal, why
from gpuspawner.preflight.decision import Refuse


def device(resource: str) -> str:
    """An extended resource as people call it: `GPU` for ``nvidia.com/gpu``."""
    vendor, _slash, name = resource.partition("/")
    if name == "gpu" or vendor.startswith("gpu."):
        return _("GPU")
    if name == "gpu.shared":
        return _("shared GPU")
    if name.startswith("mig-"):
        return _("MIG slice {profile}").format(profile=name.removeprefix("mig-"))
    return resource


def profile_named(profile: str, *choices: str) -> str:
    """A profile, with what is chosen within it where that is said."""
    if choices:
        chosen = ", ".join(_("“{choice}”").format(choice=choice) for choice in choices)
        return _("“{profile}” with {choices}").format(profile=profile, choices=chosen)
    return _("“{profile}”").format(profile=profile)


def profile_choice(choice: str, state: str) -> str:
    """A choice within a profile, told with how it stands."""
    return _("{choice} ({state})").format(choice=choice, state=state)


def profile_refused(decision: Refuse, profile: str, others: Sequence[str]) -> Message:
    """Why a profile does not start, and which others would.

    Args:
        decision: The refusal.
        profile: The profile, as `profile_named` has it; empty where there is none to choose from.
        others: What would start now, likewise, the nearest first.
    """
    if not profile:
        return refusal(decision)
    lead = _("{profile} cannot start right now.").format(profile=profile)
    if not others:
        return Message.of(lead, refusal(decision).text)
    instead = _("You can start {profiles} instead.").format(profiles=words.one_of(others))
    return Message.of(lead, why(decision), instead)


def no_longer_offered() -> Message:
    """What was chosen at the last start is not to be had any more."""
    return Message.of(
        _("Some of what you chose last time is no longer on offer."),
        _("Please choose again."),
    )
