"""What a queue of Kueue says of a pod that names it, as facts; `gpuspawner.kueue` reads them."""

from enum import StrEnum

import msgspec


class WhyClosed(StrEnum):
    """Why a queue takes nobody."""

    NO_QUEUE = "no-queue"
    """The namespace has no such LocalQueue."""
    NO_POOL = "no-pool"
    """The LocalQueue's ClusterQueue doesn't exist."""
    STOPPED = "stopped"
    """One of both is stopped."""
    INACTIVE = "inactive"
    """Kueue says that the ClusterQueue admits nobody."""


class Never(msgspec.Struct, frozen=True):
    """The pod asks for more than its queue could ever give.

    Attributes:
        asked: In millicores of CPU, and whole units of everything else.
        most: What the flavor with most of it could give, as `asked`.
    """

    queue: str
    resource: str
    asked: int
    most: int


class Closed(msgspec.Struct, frozen=True):
    """The queue takes nobody.

    Attributes:
        details: What Kueue says of it; "" for nothing.
    """

    queue: str
    why: WhyClosed
    details: str = ""


class PlaceInQueue(msgspec.Struct, frozen=True):
    """What one who waits in a queue may want to know.

    Attributes:
        queue: The LocalQueue.
        pool: The ClusterQueue, from which the quota comes; "" if the hub may not see it.
        ahead: How many workloads are ahead; None if the hub may not see them.
        resource: Of which Kueue says that too little is left: "nvidia.com/gpu", for example; "" if
            it doesn't say so.
        used, nominal: How much of it the ClusterQueue uses, and has of its own, in the flavors of
            which Kueue says so.
        is_lent: Whether others have borrowed what it doesn't use.
        is_stopped: Whether the queue admits nobody until an administrator lets it.
    """

    queue: str
    pool: str = ""
    ahead: int | None = None
    resource: str = ""
    used: int = 0
    nominal: int = 0
    is_lent: bool = False
    is_stopped: bool = False
