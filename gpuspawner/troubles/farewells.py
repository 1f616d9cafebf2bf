"""The last that was known of pods that are gone.

A lost node, a preemption or an eviction deletes a pod within seconds, and the hub looks at a server
only every 30 seconds. By then, nothing is left of the pod that could tell why.
"""

from gpuspawner.kube.caches import Recent
from gpuspawner.kube.meta import Key
from gpuspawner.kube.startup import read_pod
from gpuspawner.troubles.ending import Ending, ending_of, utc_now

_MOST = 1_000
"""Many more than can end between two looks at them."""


class Farewells:
    """How the last pods ended that are gone; the oldest are forgotten first."""

    def __init__(self, most: int = _MOST) -> None:
        self._endings = Recent[Key, Ending](most)

    def note(self, pod: object) -> None:
        """Note the last version of a pod that is gone."""
        last = read_pod(pod)
        if last is None:
            return
        key = last.metadata.key
        self.forget(key)
        if ending := ending_of(last, utc_now()):
            self._endings[key] = ending

    def of(self, key: Key) -> Ending | None:
        """Return how the last pod of this name ended; None if nothing told."""
        return self._endings.get(key)

    def forget(self, key: Key) -> None:
        """Forget the last pod of this name: another one has it now."""
        self._endings.pop(key, None)
