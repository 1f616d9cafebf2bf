"""Reads what the kubelet says of an image: how its pull goes, and why it isn't pulled.

Source: ``pkg/kubelet/images/image_manager.go`` of 1.36.2. The time that includes waiting for other
pulls came in 1.27, the size in 1.30, and the words on access in 1.34.
"""

import re

import msgspec

from gpuspawner.troubles.phrases import reader
from gpuspawner.troubles.trouble import About, Fault, Kind

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
_QUOTED = r'"((?:[^"\\]|\\.)*)"'
_PULLING = re.compile(rf"[Pp]ulling image {_QUOTED}")
_PRESENT = re.compile(rf"Container image {_QUOTED} already present on machine")
_PULLED = re.compile(
    rf"Successfully pulled image {_QUOTED}"
    rf"(?: in (?P<took>{DURATION})(?: \((?P<waited>{DURATION}) including waiting\))?)?"
    r"(?:\. Image size: (?P<size>[0-9]{1,18}) bytes)?"
)


def read_pull(message: str) -> Pulling | Pulled | None:
    """Read an event's message; return None if it isn't about a pull that goes on or went well."""
    if found := _PULLING.match(message):
        return Pulling(found[1])
    if found := _PRESENT.match(message):
        return Pulled(found[1], was_there=True)
    if found := _PULLED.match(message):
        return Pulled(
            found[1],
            seconds=seconds(found["took"]) if found["took"] else None,
            with_waiting=seconds(found["waited"]) if found["waited"] else None,
            size=int(found["size"]) if found["size"] else None,
        )
    return None


# Reads why an image isn't pulled, in the words of containerd, CRI-O, Docker and registries.
#
# Everything after the kubelet's own text is whatever the container runtime or the registry says, so
# only well-known phrases are looked for.

# Definite answers: no new try helps unless somebody changes the image, the registry or the pod.
# A new node may get its credentials, or an image that it may not pull itself, a little later
# (kubernetes/kops#3877).
_FINAL = frozenset({Kind.IMAGE_MISSING, Kind.IMAGE_NAME, Kind.IMAGE_PLATFORM, Kind.IMAGE_SIGNATURE})

# In this order: a registry that can't be reached also isn't authorized, and "not found" is said of
# much else than images.
_kind = reader(
    {
        Kind.REGISTRY_LIMIT: (
            r"too ?many ?requests",
            r"pull rate limit",
            r"\b429\b",
            r"pull QPS exceeded",
        ),
        Kind.DISK_FULL: (r"no space left on device", r"disk quota exceeded"),
        Kind.IMAGE_SIGNATURE: (r"signature ?validation ?failed", r"Source image rejected"),
        Kind.REGISTRY_UNREACHABLE: (
            r"dial tcp",
            r"i/o timeout",
            r"no such host",
            r"connection (?:refused|reset|timed out)",
            r"x509:",
            r"\btls: ",
            r"TLS handshake timeout",
            r"deadline ?exceeded",
            r"server misbehaving",
            r"\bEOF\b",
            r"network is unreachable",
            r"no route to host",
            r"proxyconnect",
            r"server gave HTTP response",
            r"request canceled",
            r"registry ?(?:is )?unavailable",
            r"\b50[0234]\b (?:Internal|Bad|Service|Gateway)",
        ),
        Kind.IMAGE_PLATFORM: (
            r"no match for platform in manifest",
            r"no matching manifest for",
            r"no image found in (?:manifest list|image index) for architecture",
            r"does not match the specified platform",
            r"cannot be used on this platform",
        ),
        Kind.IMAGE_FORBIDDEN: (
            r"unauthori[sz]ed",
            r"authentication required",
            r"authorization failed",
            r"access denied",
            r"\b40[13]\b",
            r"no basic auth credentials",
            r"insufficient_scope",
            r"\bdenied: ",
            r"not authorized",
            r"\bforbidden\b",
            r"failed to authorize",
        ),
        Kind.IMAGE_NAME: (
            r"InvalidImageName",
            r"invalid reference format",
            r"couldn't parse image",
            r"invalid image reference",
            r"short[- ]name (?:mode is enforcing|.{0,999}did not resolve)",
        ),
        Kind.IMAGE_NEVER_PULLED: (
            r"is not present with pull policy of Never",
            r"ErrImageNeverPull",
        ),
        Kind.IMAGE_MISSING: (
            r"failed to resolve (?:reference|image)\b.{0,999}not found",
            r"(?:manifest|name)[ _]unknown",
            r"\b404\b",
            r"manifest for .{0,999}not found",
            r"no such image",
            r"repository .{0,999}(?:not found|does not exist)",
            r"tag .{0,999}does not exist",
        ),
    }
)
_NAMED = re.compile(rf"[Ii]mage {_QUOTED}")
_NO_CAUSE = re.compile(
    rf"(?:Error: (?:ErrImagePull|ImagePullBackOff)|Back-off pulling image {_QUOTED})?\s*"
)
_ADDRESS = re.compile(r'https?://[^\s"]+')
_LONGEST_NAME = 1024


def of_pull(text: str, image: str = "", reason: str = "") -> Fault:
    """Read a text about an image that isn't pulled.

    Args:
        text: The message of an event or of a container's status.
        image: As the pod names it, if the text may not.
        reason: Of the container's status: it may say more than the text.
    """
    named = _NAMED.search(text)
    image = image or (named[1] if named else "")
    kind = _kind(f"{reason}: {_without_names(text, image)}")
    if kind is None:
        kind = Kind.PULL_BACK_OFF if _NO_CAUSE.fullmatch(text) else Kind.PULL_FAILED
    return Fault(kind, About(image=image), is_final=kind in _FINAL)


def _without_names(text: str, image: str) -> str:
    """Take the image's name and all addresses out of a text: they are no reasons."""
    said = _ADDRESS.sub("", text)
    if not 0 < len(image) <= _LONGEST_NAME:
        return said
    return re.sub(rf"(?<![\w.-]){re.escape(image)}(?![\w-])", "", said)
