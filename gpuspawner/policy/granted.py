"""The annotation in which a pod says by which policies its owner got it.

Anyone who may change pods can edit it. So it only ever adds to a count: amounts are those of the
pod's own fields, and the members of a group count without it.
"""

import msgspec

from gpuspawner.kube.servers import GRANT

LONGEST = 262_144
"""A longer annotation isn't read. The API server accepts no more bytes in all of a pod's."""


class Granted(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a server's owner got when it started.

    Attributes:
        accelerator: The key of its accelerator; "" without one of ours.
        policies: The policies that applied.
        groups: The groups whose shares were charged.
        lifetime: Seconds after which the server ends; None without an end.
    """

    accelerator: str = ""
    policies: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    lifetime: int | None = None

    def annotation(self) -> dict[str, str]:
        """Return it as an annotation of the pod."""
        return {GRANT: msgspec.json.encode(self).decode()}


def read(written: str) -> Granted:
    """Read the annotation of a pod; what can't be read says nothing."""
    if not written or len(written) > LONGEST:
        return Granted()
    try:
        return msgspec.json.decode(written, type=Granted)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return Granted()
