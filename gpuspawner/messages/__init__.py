"""Turns decisions and facts into sentences for users and administrators."""

from gpuspawner.messages.administrators import explain_overruled, explain_refusal, explain_unknown
from gpuspawner.messages.availability import StateText, state_text
from gpuspawner.messages.corrections import (
    correction,
    correction_at_fields,
    gone_at_start,
    gone_from_form,
    no_longer_offered,
    too_large,
    unreadable_body,
)
from gpuspawner.messages.on_form import Button, OnForm, button
from gpuspawner.messages.refusals import (
    already_started,
    denied,
    misconfigured,
    profile_refused,
    refusal,
    unreachable,
)
from gpuspawner.messages.starts import progress
from gpuspawner.messages.words import Message, device, profile_choice, profile_named

__all__ = [
    "Button",
    "Message",
    "OnForm",
    "StateText",
    "already_started",
    "button",
    "correction",
    "correction_at_fields",
    "denied",
    "device",
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
    "state_text",
    "too_large",
    "unreachable",
    "unreadable_body",
]
