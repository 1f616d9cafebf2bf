"""Free TCP ports on the loopback address."""

import random
import socket

# Below the range that the kernel uses for outgoing connections, so that a port stays free while
# its server restarts.
_RANGE = range(20000, 32000)
# Tests seed the random module, each with the same number, and then all would draw the same ports.
_RANDOM = random.SystemRandom()


def free_ports(count: int) -> list[int]:
    """Return ports that nothing listens on, all different.

    Another process may take one before the server starts. The caller then tries again.
    """
    found: list[int] = []
    for port in _RANDOM.sample(_RANGE, len(_RANGE)):
        if len(found) == count:
            break
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            found.append(port)
    return found
