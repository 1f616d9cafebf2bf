"""Those in line who aren't called for now: policies don't allow them yet, or they are away."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from gpuspawner.kube.meta import Key
from gpuspawner.line.line import Line, Ticket

Allows = Callable[[], Awaitable[bool]]
"""Whether policies allow a server at this moment."""

_ANSWER_SECONDS = 5.0
"""How long policies may take to allow one server; others are asked about only then."""


class HeldBack:
    """Knows why tickets are held back; who has two reasons waits for both.

    Args:
        let_back: Is called with a ticket for which no reason is left.
    """

    def __init__(self, line: Line, let_back: Callable[[Ticket], None]) -> None:
        self._line = line
        self._let_back = let_back
        self._limited: dict[Key, Allows] = {}
        self._absent: set[Key] = set()
        self._asking: asyncio.Task[None] | None = None

    def limit(self, ticket: Ticket, allows: Allows) -> None:
        """Hold a ticket back until policies allow its server."""
        self._limited[ticket.key] = allows

    def is_limited(self, ticket: Ticket) -> bool:
        """Whether policies don't allow a server yet."""
        return ticket.key in self._limited

    def leave(self, ticket: Ticket) -> None:
        """Hold a ticket back while its owner is away."""
        self._absent.add(ticket.key)

    def come(self, ticket: Ticket) -> None:
        """Note that a ticket's owner is here."""
        self._absent.discard(ticket.key)
        self._free(ticket)

    def forget(self, ticket: Ticket) -> None:
        """Forget a ticket that isn't in line any more."""
        self._limited.pop(ticket.key, None)
        self._absent.discard(ticket.key)

    def ask_policies(self) -> None:
        """Let those back whom policies allow again, in order, unless they are being asked.

        This has a task of its own, because an administrator's function may take its time.
        """
        if self._limited and (self._asking is None or self._asking.done()):
            self._asking = asyncio.create_task(self._ask_all())

    async def _ask_all(self) -> None:
        now = time.time()
        known = filter(None, map(self._line.find, self._limited))
        for ticket in sorted(known, key=lambda it: it.precedence(now)):
            allows = self._limited.get(ticket.key)
            is_allowed = allows is not None and await _is_allowed(allows)
            if is_allowed and self._limited.get(ticket.key) is allows:
                del self._limited[ticket.key]
                self._free(ticket)

    def _free(self, ticket: Ticket) -> None:
        is_held_back = ticket.key in self._absent or ticket.key in self._limited
        if self._line.is_held_back(ticket.key) and not is_held_back:
            self._let_back(ticket)


async def _is_allowed(allows: Allows) -> bool:
    """Whether policies allow a server; also if they fail: its start asks again, and tells why."""
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            return await allows()
    except TimeoutError:
        return False
    except Exception:  # noqa: BLE001, see above
        return True
