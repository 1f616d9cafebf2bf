"""By which policies a server's owner got it, as the hub stores it and as its pod says.

The pod says it in an annotation, which is for people and for the commands: anyone who may change
pods can edit it, so the hub counts by what it has stored itself.
"""

import msgspec

STORED = "granted"
"""The key of the text in our part of a server's stored state."""
LONGEST = 262_144
"""A longer annotation isn't read. The API server accepts no more bytes in all of a pod's."""


class Granted(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a server's owner got when it started.

    Attributes:
        accelerator: The key of its accelerator; "" without one of ours.
        policies: The policies that applied.
        groups: The groups whose shares were charged.
        lifetime: Seconds after which the server ends; None without an end.
        pod: The uid of its pod; "" as long as the hub doesn't know it. Only the hub stores it.
    """

    accelerator: str = ""
    policies: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    lifetime: int | None = None
    pod: str = ""

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
