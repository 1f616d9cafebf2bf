"""Sentences about KubeSpawner's profiles: what they request, and why one can't start."""

from collections.abc import Sequence

from gpuspawner.language import gettext as _
from gpuspawner.language import one_of
from gpuspawner.messages.message import Message
from gpuspawner.messages.refusals import refusal, why
from gpuspawner.preflight.decision import Refuse


def device(resource: str) -> str:
    """Name an extended resource for users: `GPU` for ``nvidia.com/gpu``."""
    vendor, _slash, name = resource.partition("/")
    if name == "gpu" or vendor.startswith("gpu."):
        return _("GPU")
    if name == "gpu.shared":
        return _("shared GPU")
    if name.startswith("mig-"):
        return _("MIG slice {profile}").format(profile=name.removeprefix("mig-"))
    return resource


def profile_named(profile: str, *choices: str) -> str:
    """Name a profile, and the choices within it if there are any."""
    if choices:
        chosen = ", ".join(_("“{choice}”").format(choice=choice) for choice in choices)
        return _("“{profile}” with {choices}").format(profile=profile, choices=chosen)
    return _("“{profile}”").format(profile=profile)


def profile_choice(choice: str, state: str) -> str:
    """Name a choice within a profile, with its availability."""
    return _("{choice} ({state})").format(choice=choice, state=state)


def profile_refused(decision: Refuse, profile: str, others: Sequence[str]) -> Message:
    """Explain why a profile can't start, and name others that would.

    Args:
        decision: The refusal.
        profile: The profile, as `profile_named` returns it; empty if there are no profiles.
        others: The profiles that would start now, named in the same way, nearest first.
    """
    if not profile:
        return refusal(decision)
    lead = _("{profile} can't start right now.").format(profile=profile)
    if not others:
        return Message.of(lead, refusal(decision).text)
    instead = _("You can start {profiles} instead.").format(profiles=one_of(others))
    return Message.of(lead, why(decision), instead)


def no_longer_offered() -> Message:
    """Say that some choices of the last start are no longer offered."""
    return Message.of(
        _("Some of your last choices are no longer offered."),
        _("Please choose again."),
    )
