"""The wait queue of starts that wait until other pods are bound: first in, first out."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gpuspawner.scheduling.contention import Demand


class WaitQueue:
    """Starts that wait, in their order of arrival.

    When one leaves, the queue calls *notify*, so that the next one can try.
    """

    def __init__(self, notify: Callable[[], None]) -> None:
        self._notify = notify
        self._waiters: list[Waiter] = []

    @contextmanager
    def join(self) -> "Iterator[Waiter]":
        """Join the end of the queue; leaving the context leaves the queue."""
        waiter = Waiter(self)
        self._waiters.append(waiter)
        try:
            yield waiter
        finally:
            self._waiters.remove(waiter)
            if self._waiters:
                self._notify()

    def ahead_of(self, waiter: "Waiter") -> "list[Waiter]":
        """Return the starts ahead of this one."""
        return self._waiters[: self._waiters.index(waiter)]


class Waiter:
    """One start in the queue.

    Attributes:
        demand: The room that it waits for; None until that is known.
    """

    def __init__(self, queue: WaitQueue) -> None:
        self._queue = queue
        self.demand: Demand | None = None

    def is_blocked(self) -> bool:
        """Whether a start ahead waits for room that this one needs too.

        If small starts could pass, large ones would starve.
        """
        demand = self.demand
        return demand is not None and any(
            other.demand is not None and other.demand.touches(demand)
            for other in self._queue.ahead_of(self)
        )
