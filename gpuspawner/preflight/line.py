"""First come, first served, among those whom only a binding can tell apart."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gpuspawner.preflight.contention import Claim


class Line:
    """Those who wait, in the order in which they came.

    Args:
        notify: Called when somebody leaves, so that the next may try.
    """

    def __init__(self, notify: Callable[[], None]) -> None:
        self._notify = notify
        self._places: list[Place] = []

    @contextmanager
    def place(self) -> "Iterator[Place]":
        """A place at the end of the line, left with the context, however that ends."""
        place = Place(self)
        self._places.append(place)
        try:
            yield place
        finally:
            self._places.remove(place)
            if self._places:
                self._notify()

    def ahead_of(self, place: "Place") -> "list[Place]":
        """Those who came before."""
        return self._places[: self._places.index(place)]


class Place:
    """One place in the line.

    Attributes:
        claim: What is waited for; None until it is known.
    """

    def __init__(self, line: Line) -> None:
        self._line = line
        self.claim: Claim | None = None

    def is_blocked(self) -> bool:
        """Whether somebody ahead waits for room that is waited for here as well.

        Letting others pass would starve those who ask for much.
        """
        claim = self.claim
        return claim is not None and any(
            other.claim is not None and other.claim.touches(claim)
            for other in self._line.ahead_of(self)
        )
