"""Free TCP ports on the loopback address."""

import fcntl
import random
import socket
from itertools import chain
from typing import TextIO

from localcluster.cache import cache_directory

# Below the range that the kernel uses for outgoing connections, so that a port stays free while
# its server restarts.
_RANGE = range(20000, 32000)
# Tests seed the random module, each with the same number.
_RANDOM = random.SystemRandom()


def free_ports(count: int) -> list[int]:
    """Return ports that nothing listens on, all different.

    The user's processes take the ports in turn, each where the last one ended: a server may need
    many seconds until it listens on its port, and meanwhile nobody else is given it.
    """
    turn = cache_directory() / "next-port"
    turn.parent.mkdir(parents=True, exist_ok=True)
    with turn.open("a+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        start = _next(held)
        found: list[int] = []
        for port in chain(range(start, _RANGE.stop), range(_RANGE.start, start)):
            if len(found) == count:
                break
            if _is_free(port):
                found.append(port)
        held.truncate(0)
        held.write(str(port))
    return found


def _next(held: TextIO) -> int:
    """Return the port at which the next turn begins; the file may be new, or have been cut off."""
    held.seek(0)
    text = held.read()
    port = int(text) if text.isdecimal() else 0
    return port if port in _RANGE else _RANDOM.choice(_RANGE)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
