"""What the hub has promised to one start: room on a node, and a part of its owner's limits."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from gpuspawner.kube.meta import Key


class Keeper(Protocol):
    """Keeps promises by the namespace and name of a pod; see `Reservations`."""

    def rename(self, old: Key, new: Key) -> None:
        """Note that the pod will be sent by another name."""

    def send(self, key: Key) -> None:
        """Note that the pod is about to be sent."""

    def send_again(self, key: Key) -> None:
        """Note that the pod will be sent again."""

    def release(self, key: Key) -> None:
        """Note that the start is over."""

    def see_out(self, key: Key) -> None:
        """Note that the pod was stopped."""

    def vacate(self, key: Key) -> None:
        """Note that no pod exists, and none is being created."""


class Promises:
    """Several keepers as one."""

    def __init__(self, *keepers: Keeper) -> None:
        self._keepers = keepers

    @contextmanager
    def kept_only_if_it_starts(self, key: Key) -> Iterator[None]:
        """Release the promises if the block raises."""
        try:
            yield
        except BaseException:
            self.release(key)
            raise

    def rename(self, old: Key, new: Key) -> None:
        """As `Keeper.rename`."""
        for keeper in self._keepers if old != new else ():
            keeper.rename(old, new)

    def send(self, key: Key) -> None:
        """As `Keeper.send`."""
        for keeper in self._keepers:
            keeper.send(key)

    def send_again(self, key: Key) -> None:
        """As `Keeper.send_again`."""
        for keeper in self._keepers:
            keeper.send_again(key)

    def release(self, key: Key) -> None:
        """As `Keeper.release`."""
        for keeper in self._keepers:
            keeper.release(key)

    def see_out(self, key: Key) -> None:
        """As `Keeper.see_out`."""
        for keeper in self._keepers:
            keeper.see_out(key)

    def vacate(self, key: Key) -> None:
        """As `Keeper.vacate`."""
        for keeper in self._keepers:
            keeper.vacate(key)
