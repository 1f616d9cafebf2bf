"""The forms that were drawn last, because KubeSpawner compiles its template for each."""

from collections import deque
from collections.abc import Callable

_MOST_KEPT = 32
"""Forms; pages differ by what their users chose last. One may have 100 kB."""


class Drawn:
    """The last forms, and what each shows. One for the whole hub."""

    def __init__(self) -> None:
        self._kept: deque[tuple[object, str]] = deque(maxlen=_MOST_KEPT)

    def form(self, shows: object, draw: Callable[[], str]) -> str:
        """Return the form that shows exactly this; draw it if none is kept."""
        for place, (kept, drawn) in enumerate(self._kept):
            if kept == shows:
                self._kept[place] = shows, drawn  # the next comparison finds the same objects
                return drawn
        drawn = draw()
        self._kept.appendleft((shows, drawn))
        return drawn
