"""What autoscalers have refused, remembered for pods of the same shape."""

import time
from collections.abc import Hashable

from gpuspawner.kube.caches import Recent
from gpuspawner.scaling.outlook import Obstacle, Source

REMEMBERED_SECONDS = 600.0
_MOST = 1024

_Said = dict[Source | None, tuple[float, Obstacle]]
"""Why no node comes and when that was said, by who said it."""


class AutoscalerRefusals:
    """What autoscalers have refused, by the shape of the pod, until nodes or pools change."""

    def __init__(self, seconds: float = REMEMBERED_SECONDS) -> None:
        self._seconds = seconds
        self._version = 0
        self._about: Hashable = None
        self._said = Recent[Hashable, _Said](_MOST)

    @property
    def version(self) -> int:
        """Changes with what is remembered, also by the passing of time."""
        self._forget_old()
        return self._version

    def refused(
        self, shape: Hashable, source: Source | None, obstacle: Obstacle, about: Hashable
    ) -> None:
        """Remember why no node comes for pods of this shape; *about* are the nodes and pools.

        The *source* is the autoscaler that said no; None if none did, and still no node came.
        """
        self._forget_if_changed(about)
        said = self._said.get(shape, {})
        self._said[shape] = {**said, source: (time.monotonic(), obstacle)}
        self._version += 1

    def obstacles(self, shape: Hashable, about: Hashable) -> dict[Source | None, Obstacle]:
        """Return why no node comes for pods of this shape, by who said it."""
        self._forget_if_changed(about)
        self._forget_old()
        return {source: obstacle for source, (_, obstacle) in self._said.get(shape, {}).items()}

    def _forget_if_changed(self, about: Hashable) -> None:
        has_changed = self._about != about
        self._about = about  # the very same object is compared at once
        if has_changed and self._said:
            self._said.clear()
            self._version += 1

    def _forget_old(self) -> None:
        oldest = time.monotonic() - self._seconds
        for shape, said in list(self._said.items()):
            valid = {source: it for source, it in said.items() if it[0] >= oldest}
            if len(valid) < len(said):
                self._version += 1
                self._said[shape] = valid
                if not valid:
                    del self._said[shape]
