"""How far the live view can be trusted, as frozen facts.

A verdict counts only while the view is `Live`. Every other state makes it *unknown*, which lets a
spawn go on; none of them opens a policy.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """The first list is still under way: nothing is known to be absent.

    Attributes:
        seconds: How long it has been going on.
    """

    seconds: float


@dataclass(frozen=True, slots=True)
class Live:
    """Everything is listed and followed.

    Attributes:
        age: Seconds since the API server last confirmed the least recently confirmed kind.
    """

    age: float


@dataclass(frozen=True, slots=True)
class Stale:
    """It was live, and the API server has confirmed nothing for too long.

    Attributes:
        age: Seconds since the last confirmation.
        why: What happened, on one line: a status, an error's text or a silence.
    """

    age: float
    why: str


@dataclass(frozen=True, slots=True)
class Forbidden:
    """The API server answered that this client may not list or watch.

    Attributes:
        kinds: The resources asked for, as RBAC names them: ``("nodes", "pods")``.
        text: The API server's own message, on one line.
    """

    kinds: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Unreachable:
    """No list has ever succeeded: no configuration, no contact or no valid credentials.

    Attributes:
        text: The last error, on one line.
    """

    text: str


Health = Reading | Live | Stale | Forbidden | Unreachable
