"""Waits until a server that runs also listens, so that the message can name a crash until then.

The hub itself waits for the server's answer afterwards, without looking at its pod.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from urllib.parse import urlsplit

from gpuspawner.launch.launching import refused
from gpuspawner.launch.limits import Phase, late
from gpuspawner.launch.trouble import Trouble

# A small server listens some 50 ms after its container runs, and the hub's page waits for it.
_FIRST_SECONDS, _LONGEST_SECONDS = 0.02, 0.2
_GROWTH = 1.5
_CONNECT_SECONDS = 5.0


async def until_it_listens(
    url: object, patience: float, troubles: Callable[[], Iterable[Trouble]] = tuple
) -> None:
    """Wait until something accepts connections at a server's address.

    Args:
        url: As KubeSpawner's start returns it; anything else isn't waited for.
        patience: In seconds; the hub's own ``http_timeout``.
        troubles: Returns what goes wrong: a server that crashes again and again doesn't listen.

    Raises:
        Refusal: Nothing does.
    """
    address = _address(url)
    if address is None:
        return
    pause = _FIRST_SECONDS
    try:
        async with asyncio.timeout(patience):
            while not await _accepts(*address):
                await asyncio.sleep(pause)
                pause = min(pause * _GROWTH, _LONGEST_SECONDS)
    except TimeoutError:
        raise refused(late(troubles(), Phase.ANSWERED)) from None


def _address(url: object) -> tuple[str, int] | None:
    if not isinstance(url, str):
        return None
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return None
    return parts.hostname, port


async def _accepts(host: str, port: int) -> bool:
    with suppress(OSError, UnicodeError):  # as a name that no host can have
        async with asyncio.timeout(_CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(host, port)
        writer.close()
        return True
    return False
