"""Facts to sentences: the only place where decisions are put into words."""

from gpuspawner.messages.administrators import explain_health, explain_refusal, explain_unknown
from gpuspawner.messages.corrections import correction
from gpuspawner.messages.message import Message
from gpuspawner.messages.progress import progress
from gpuspawner.messages.refusals import denied, misconfigured, refusal

__all__ = [
    "Message",
    "correction",
    "denied",
    "explain_health",
    "explain_refusal",
    "explain_unknown",
    "misconfigured",
    "progress",
    "refusal",
]
