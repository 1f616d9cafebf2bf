"""Reads why an image isn't pulled, in the words of containerd, CRI-O, Docker and registries.

The kubelet's own texts are in ``pkg/kubelet/images/image_manager.go``. Everything after them is
whatever the container runtime or the registry says, so only well-known phrases are looked for.
"""

import re

from gpuspawner.troubles.phrases import reader
from gpuspawner.troubles.trouble import About, Fault, Kind

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
        Kind.IMAGE_SIGNATURE: (
            r"signature ?validation ?failed",
            r"Source image rejected",
        ),
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
_QUOTED = r'"((?:[^"\\]|\\.)*)"'
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
