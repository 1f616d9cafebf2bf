"""Those in line who aren't called for now: policies don't allow them yet, or they are away."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from gpuspawner.cluster.background import RESTS
from gpuspawner.kube.meta import Key
from gpuspawner.line.order import Serving
from gpuspawner.line.tickets import Line, Ticket

Allows = Callable[[], Awaitable[bool]]
"""Whether policies allow a server at this moment."""

_PROMPT_SECONDS = 0.2
"""For how long others aren't asked about, so that prompt answers come in the order of the line."""
_ANSWER_SECONDS = 60.0
"""After how long without an answer policies are asked anew: it may never come."""


class HeldBack:
    """Knows why tickets are held back; who has two reasons waits for both.

    Args:
        serving: Gets to know of it.
        look: Is called once no reason is left for somebody.
    """

    def __init__(self, line: Line, serving: Serving, look: Callable[[], None]) -> None:
        self._line = line
        self._serving = serving
        self._look = look
        self._limited: dict[Key, Allows] = {}
        self._absent: set[Key] = set()
        self._asking: asyncio.Task[None] | None = None
        self._questions: dict[Key, asyncio.Task[None]] = {}
        """The last one about each ticket: an administrator's function may take its time."""

    def limit(self, ticket: Ticket, allows: Allows) -> None:
        """Note that a ticket is held back until policies allow its server."""
        self._drop_question(ticket)
        self._limited[ticket.key] = allows
        self._serving.hold_back(ticket)

    def is_limited(self, key: Key) -> bool:
        """Whether policies don't allow a server yet."""
        return key in self._limited

    def owner_away(self, ticket: Ticket) -> None:
        """Note that a ticket is held back while its owner is away."""
        self._absent.add(ticket.key)
        self._serving.hold_back(ticket)

    def owner_back(self, ticket: Ticket) -> None:
        """Note that a ticket's owner is here."""
        self._absent.discard(ticket.key)
        self._free(ticket)

    def forget(self, ticket: Ticket) -> None:
        """Forget a ticket that isn't in line any more."""
        self._limited.pop(ticket.key, None)
        self._absent.discard(ticket.key)
        self._drop_question(ticket)

    def ask_policies(self) -> None:
        """Let those back whom policies allow again, in order, unless they are being asked.

        Nobody waits for a late answer about somebody else; it is taken when it comes.
        """
        if self._limited and (self._asking is None or self._asking.done()):
            self._asking = asyncio.create_task(self._ask_all())

    async def _ask_all(self) -> None:
        now = time.time()
        known = filter(None, map(self._line.find, self._limited))
        for ticket in sorted(known, key=lambda it: it.precedence(now)):
            allows, last = self._limited.get(ticket.key), self._questions.get(ticket.key)
            if allows is not None and (last is None or last.done()):
                usual = await _turn()
                question = asyncio.create_task(self._ask(ticket, allows))
                self._questions[ticket.key] = question
                rest = RESTS * (await _turn() - usual)  # a function that isn't async answers in it
                await asyncio.wait([question], timeout=_PROMPT_SECONDS)
                await asyncio.sleep(max(0.0, rest))

    async def _ask(self, ticket: Ticket, allows: Allows) -> None:
        is_allowed = await _is_allowed(allows)
        if is_allowed and self._limited.get(ticket.key) is allows:
            del self._limited[ticket.key]
            self._free(ticket)

    def _drop_question(self, ticket: Ticket) -> None:
        if question := self._questions.pop(ticket.key, None):
            question.cancel()

    def _free(self, ticket: Ticket) -> None:
        is_held_back = ticket.key in self._absent or ticket.key in self._limited
        if self._line.is_held_back(ticket.key) and not is_held_back:
            self._serving.let_back(ticket)
            self._look()


async def _turn() -> float:
    """Return for how many seconds the loop does something else."""
    began = time.monotonic()
    await asyncio.sleep(0)
    return time.monotonic() - began


async def _is_allowed(allows: Allows) -> bool:
    """Whether policies allow a server; also if they fail: its start asks again, and tells why."""
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            return await allows()
    except TimeoutError:
        return False
    except Exception:  # noqa: BLE001, see above
        return True
