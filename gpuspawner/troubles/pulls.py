"""Parses what the kubelet says of an image while and after it is pulled.

Source: ``pkg/kubelet/images/image_manager.go`` of 1.36.2. The time that includes waiting for other
pulls came in 1.27, the size in 1.30, and the words on access in 1.34.
"""

import re

import msgspec

# Parses durations as Go prints them: `3m53.352084967s`, `679.368724ms`.

_UNITS = {
    "h": 3600.0,
    "m": 60.0,
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ns": 1e-9,
}
_PART = r"[0-9]{1,15}(?:\.[0-9]{1,15})?(?:h|ms|m|us|µs|μs|ns|s)"
_PARTS = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)(h|ms|m|us|µs|μs|ns|s)")

DURATION = rf"(?:{_PART}){{1,4}}"
"""Matches a duration."""


def seconds(duration: str) -> float:
    """Return the seconds of a text that `DURATION` matches."""
    return sum(float(number) * _UNITS[unit] for number, unit in _PARTS.findall(duration))


# What the kubelet says of an image.


class Pulling(msgspec.Struct, frozen=True):
    """An image is being pulled."""

    image: str


class Pulled(msgspec.Struct, frozen=True):
    """An image is on the node.

    Attributes:
        was_there: Whether it had been there before, so that nothing was pulled.
        seconds: How long the pull took; None if it isn't said.
        with_waiting: The same with the time for which the pull waited for others.
        size: In bytes, as the registry stores it: compressed.
    """

    image: str
    was_there: bool = False
    seconds: float | None = None
    with_waiting: float | None = None
    size: int | None = None


# As Go quotes: with a backslash before a quotation mark.
_IMAGE = r'"(?P<image>(?:[^"\\]|\\.)*)"'
_PULLING = re.compile(rf"[Pp]ulling image {_IMAGE}")
_PRESENT = re.compile(rf"Container image {_IMAGE} already present on machine")
_PULLED = re.compile(
    rf"Successfully pulled image {_IMAGE}"
    rf"(?: in (?P<took>{DURATION})(?: \((?P<waited>{DURATION}) including waiting\))?)?"
    r"(?:\. Image size: (?P<size>[0-9]{1,18}) bytes)?"
)


def read(message: str) -> Pulling | Pulled | None:
    """Read an event's message; return None if it isn't about a pull that goes on or went well."""
    if found := _PULLING.match(message):
        return Pulling(found["image"])
    if found := _PRESENT.match(message):
        return Pulled(found["image"], was_there=True)
    if found := _PULLED.match(message):
        return Pulled(
            found["image"],
            seconds=seconds(found["took"]) if found["took"] else None,
            with_waiting=seconds(found["waited"]) if found["waited"] else None,
            size=int(found["size"]) if found["size"] else None,
        )
    return None
