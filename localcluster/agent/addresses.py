"""Loopback addresses for pods."""

import ipaddress
import secrets

# All of 127.0.0.0/8 is this machine's, and other programs use 127.0.x.y. Random addresses from the
# rest keep clusters that run at the same time apart.
_FIRST = int(ipaddress.IPv4Address("127.64.0.1"))
_LAST = int(ipaddress.IPv4Address("127.250.255.254"))


class Addresses:
    """Hands out addresses, each to one pod at a time."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self) -> str:
        """Return an address that no pod has."""
        while True:
            address = str(ipaddress.IPv4Address(_FIRST + secrets.randbelow(_LAST - _FIRST)))
            if address not in self._taken:
                self._taken.add(address)
                return address

    def give_back(self, address: str) -> None:
        """Free an address."""
        self._taken.discard(address)
