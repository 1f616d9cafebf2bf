"""Who waits first for room that only a binding can settle: first in, first out."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gpuspawner.preflight.contention import Demand


class WaitQueue:
    """Starts that wait, in the order in which they came.

    Args:
        notify: Called when one leaves, so that the next can try.
    """

    def __init__(self, notify: Callable[[], None]) -> None:
        self._notify = notify
        self._waiters: list[Waiter] = []

    @contextmanager
    def join(self) -> "Iterator[Waiter]":
        """Wait at the end of the queue until the context ends, however it ends."""
        waiter = Waiter(self)
        self._waiters.append(waiter)
        try:
            yield waiter
        finally:
            self._waiters.remove(waiter)
            if self._waiters:
                self._notify()

    def ahead_of(self, waiter: "Waiter") -> "list[Waiter]":
        """Those that came before."""
        return self._waiters[: self._waiters.index(waiter)]


class Waiter:
    """One start in the queue.

    Attributes:
        demand: The room that it waits for; None until it is known.
    """

    def __init__(self, queue: WaitQueue) -> None:
        self._queue = queue
        self.demand: Demand | None = None

    def is_blocked(self) -> bool:
        """Whether one ahead waits for room that this one needs as well.

        Letting others pass would starve those that need much.
        """
        demand = self.demand
        return demand is not None and any(
            other.demand is not None and other.demand.touches(demand)
            for other in self._queue.ahead_of(self)
        )
