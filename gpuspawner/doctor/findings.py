"""What the doctor finds."""

from enum import StrEnum

import msgspec


class Severity(StrEnum):
    """How bad a finding is, the worst first."""

    ERROR = "error"
    """Some servers can't start, or start unchecked. The doctor's exit status is 1."""
    WARNING = "warning"
    """Users will be surprised, or some servers start unchecked."""
    FINE = "fine"
    """Nothing to do."""


class Finding(msgspec.Struct, frozen=True):
    """One result of a check.

    Attributes:
        id: A short name, which never changes, for programs: ``rights-nodes``.
        text: One sentence: what is so. It may quote the cluster, so it isn't safe to print yet.
        advice: One sentence: what to do. Empty if there is nothing to do.
    """

    id: str
    severity: Severity
    text: str
    advice: str = ""


def error(id_: str, text: str, advice: str) -> Finding:
    """Make a finding that breaks something."""
    return Finding(id_, Severity.ERROR, text, advice)


def warning(id_: str, text: str, advice: str) -> Finding:
    """Make a finding that surprises somebody."""
    return Finding(id_, Severity.WARNING, text, advice)


def fine(id_: str, text: str, advice: str = "") -> Finding:
    """Make a finding that needs no action."""
    return Finding(id_, Severity.FINE, text, advice)
