"""Facts to sentences: the only place where decisions are put into words."""

from gpuspawner.messages.administrators import (
    explain_health,
    explain_overruled,
    explain_refusal,
    explain_unknown,
)
from gpuspawner.messages.corrections import correction, correction_at_fields
from gpuspawner.messages.message import Message
from gpuspawner.messages.on_form import Button, OnForm, button
from gpuspawner.messages.profiles import (
    device,
    no_longer_offered,
    profile_choice,
    profile_named,
    profile_refused,
)
from gpuspawner.messages.progress import progress
from gpuspawner.messages.refusals import (
    already_started,
    denied,
    misconfigured,
    refusal,
    unreachable,
)
from gpuspawner.messages.saved import gone_at_start, gone_from_form
from gpuspawner.messages.states import Standing, standing

__all__ = [
    "Button",
    "Message",
    "OnForm",
    "Standing",
    "already_started",
    "button",
    "correction",
    "correction_at_fields",
    "denied",
    "device",
    "explain_health",
    "explain_overruled",
    "explain_refusal",
    "explain_unknown",
    "gone_at_start",
    "gone_from_form",
    "misconfigured",
    "no_longer_offered",
    "profile_choice",
    "profile_named",
    "profile_refused",
    "progress",
    "refusal",
    "standing",
    "unreachable",
]
