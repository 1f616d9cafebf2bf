"""Keeps the usage up to date with the pods of servers, as a watch reads them."""

from collections.abc import Callable, Iterator

from gpuspawner.kube.meta import Key
from gpuspawner.kube.objects import AnyObject, Undecodable
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.kube.servers import ServerPod
from gpuspawner.policies.charges import Charge, Meter
from gpuspawner.policies.pod_owners import Claims
from gpuspawner.policies.usage import Usage


class Ledger:
    """The store that a reflector of servers' pods writes.

    Args:
        meter: Returns the meter of this moment: discovered accelerators change.

    Attributes:
        claims: Whose servers the pods are.
        pods: The pods as read; those that can't be read are in `unread`.
        unread: The pods of which nobody knows what they take.
    """

    def __init__(self, usage: Usage, meter: Callable[[], Meter], claims: Claims) -> None:
        self.usage = usage
        self.claims = claims
        self.pods: dict[Key, ServerPod] = {}
        self.unread: set[Key] = set()
        self._meter = meter
        self._last: Meter | None = None

    def refresh(self) -> None:
        """Count all pods again if the accelerators have changed since."""
        meter = self._meter()
        if meter != self._last:
            self._last = meter
            self.count_again()

    def count_again(self) -> None:
        """Count all pods again."""
        for pod in list(self.pods.values()):  # `put` drops those that it can't read
            self.put(pod)

    def know(self, key: Key, whose: Charge, uid: str) -> None:
        """Count the pod of this uid for a server, unless it is known whose it is."""
        if self.claims.pods.setdefault(uid, whose) is whose and key in self.pods:
            self.put(self.pods[key])

    def devices(self, pod: ServerPod) -> int:
        """Return how many devices a pod has that count as GPUs."""
        return self._meter().devices(pod)

    def put(self, thing: AnyObject | Undecodable) -> None:
        """Store the newest version of a pod."""
        if isinstance(thing, Undecodable):
            key = (thing.namespace, thing.name)
            self._drop(key)
            self.unread.add(key)
        elif isinstance(thing, ServerPod):
            key = thing.metadata.key
            self.unread.discard(key)
            if (last := self.pods.get(key)) and last.metadata.uid != thing.metadata.uid:
                self.claims.pods.pop(last.metadata.uid, None)  # it went while no watch told
            self._last = self._last or self._meter()
            whose = self.claims.of(thing)
            if whose is None:  # it isn't a user's server, whatever it takes
                self.usage.remove(key)
                self.pods[key] = thing
                return
            try:
                charge = self._last.charge(thing, whose)
            except QuantityError:
                self._drop(key)
                self.unread.add(key)
                return
            self.pods[key] = thing
            self.usage.put(key, charge)

    def remove(self, kind: str, namespace: str, name: str) -> None:  # noqa: ARG002, of the protocol
        """Drop a pod, if it exists."""
        pod = self.pods.get((namespace, name))
        self._drop((namespace, name))
        if pod is not None:
            self.claims.pods.pop(pod.metadata.uid, None)

    def keys(self, kind: str) -> Iterator[Key]:  # noqa: ARG002, of the protocol
        """Yield (namespace, name) of all pods."""
        yield from self.pods
        yield from self.unread

    def mark_known(self, kind: str) -> None:
        """Do nothing: the reflector's own state tells whether all pods are known."""

    def mark_unknown(self, kind: str) -> None:
        """Do nothing, as in `mark_known`."""

    def _drop(self, key: Key) -> None:
        self.pods.pop(key, None)
        self.unread.discard(key)
        self.usage.remove(key)
