"""Whether a pod that was sent still exists, as far as the live view shows."""

import time

from gpuspawner.cluster.health import Live
from gpuspawner.cluster.view import ClusterView
from gpuspawner.reservations.reservations import LEFT_SECONDS

UNSEEN_SECONDS = 2.0
"""How long a pod must be out of sight. The view may lag, and still have shown an older one."""


class InView:
    """Whether the view still shows a pod that was sent."""

    def __init__(self, view: ClusterView, key: str, unseen: float = UNSEEN_SECONDS) -> None:
        self._view = view
        self._key = key
        self._unseen = unseen
        self._was_seen = self._is_seen()
        self._missing_since: float | None = None

    def is_lost(self) -> bool:
        """Whether the pod is gone: out of sight for a while, and not only because of the view.

        The time runs from the first look without the pod: looks may be far apart. A pod that was
        never in view may have come and gone in one answer of a watch.
        """
        is_seen, now = self._is_seen(), time.monotonic()
        self._was_seen = self._was_seen or is_seen
        # Without an error, a view may still be reading its first list.
        if is_seen or not (self._view.in_touch() and isinstance(self._view.health(), Live)):
            self._missing_since = None
            return False
        if self._missing_since is None:
            self._missing_since = now
        return now - self._missing_since >= (self._unseen if self._was_seen else LEFT_SECONDS)

    def _is_seen(self) -> bool:
        state = self._view.state
        return (
            self._key in state.pods
            or self._key in state.unbound_pods
            or any(
                it.kind == "Pod" and self._key == f"{it.namespace}/{it.name}"
                for it in state.undecodable
            )
        )
