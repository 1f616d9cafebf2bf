"""By which policies a server's owner got it, as the hub stores it and as its pod says.

The pod says it in an annotation, which is for people and for the commands: anyone who may change
pods can edit it, so the hub counts by what it has stored itself.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from gpuspawner.kube.servers import GRANT

STORED = "granted"
"""The key of the text in our part of a server's stored state."""
LONGEST = 262_144
"""A longer annotation isn't read. The API server accepts no more bytes in all of a pod's."""


class WhenIdle(msgspec.Struct, frozen=True, omit_defaults=True):
    """When a server whose GPUs aren't used is given back.

    Attributes:
        after: Seconds without use, after which its owner is warned.
        after_if_others_wait: The same while somebody waits in line for what it has.
        warning: Seconds from the warning until it is stopped.
        keeps: How often the owner may keep it, until it is used again.
        kept: For how many seconds each time.
    """

    after: int
    after_if_others_wait: int
    warning: int
    keeps: int
    kept: int

    def strictest(self, other: "WhenIdle") -> "WhenIdle":
        """Return what holds if both do."""
        return WhenIdle(*map(min, msgspec.structs.astuple(self), msgspec.structs.astuple(other)))


class Granted(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a server's owner got when it started.

    Attributes:
        accelerator: The key of its accelerator; "" without one of ours.
        policies: The policies that applied.
        groups: The groups whose shares were charged.
        lifetime: Seconds after which the server ends; None without an end.
        idle: When it is given back if its GPUs aren't used; None for never.
        pod: The uid of its pod; "" as long as the hub doesn't know it. Only the hub stores it.
    """

    accelerator: str = ""
    policies: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    lifetime: int | None = None
    pod: str = ""
    idle: WhenIdle | None = None

    def written(self) -> str:
        """Return it as text, for the annotation of a pod and for the hub's database."""
        return msgspec.json.encode(self).decode()


def stored(part: object) -> Granted:
    """Read it from our part of a server's stored state."""
    return read(part.get(STORED) if isinstance(part, dict) else None)


def read(written: object) -> Granted:
    """Read the text; what can't be read says nothing."""
    if not isinstance(written, str) or len(written) > LONGEST:
        return Granted()
    try:
        return msgspec.json.decode(written, type=Granted)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return Granted()


# Writes into a pod by which policies its owner got it, and when it ends.

LIFETIME = "GPUSPAWNER_LIFETIME_SECONDS"
"""A server's environment variable: how long it may run, in seconds."""


def ends_after(pod: Mapping[str, Any], lifetime: int | None) -> int | None:
    """Return the seconds after which Kubernetes ends a pod with this lifetime; None if it doesn't.

    A shorter deadline of the administrator's counts, unless it is no number: the API server rejects
    such a pod.
    """
    own = (pod.get("spec") or {}).get("activeDeadlineSeconds")
    return min((it for it in (own, lifetime) if it and isinstance(it, int)), default=None)


def mark(pod: Mapping[str, Any], granted: Granted) -> dict[str, Any]:
    """Return a pod that says what was granted, and that Kubernetes ends after its lifetime.

    The time counts from the moment when the node begins to start the pod, so waiting for a node
    costs nothing (Kubernetes documentation, Pod API, ``activeDeadlineSeconds``).
    """
    metadata, spec = pod.get("metadata") or {}, pod["spec"]
    annotations = {**(metadata.get("annotations") or {}), GRANT: granted.written()}
    made = {**pod, "metadata": {**metadata, "annotations": annotations}}
    if granted.lifetime is None:
        return made
    deadline = ends_after(pod, granted.lifetime)
    first, *others = spec["containers"]
    kept = [entry for entry in first.get("env") or () if entry["name"] != LIFETIME]
    server = {**first, "env": [*kept, {"name": LIFETIME, "value": str(deadline)}]}
    ends = {"containers": [server, *others], "activeDeadlineSeconds": deadline}
    return {**made, "spec": {**spec, **ends}}
