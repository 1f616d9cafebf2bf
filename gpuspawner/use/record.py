"""The one record of what has happened to servers, who is told of it, and its summaries."""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable
from itertools import chain

import msgspec
from msgspec.structs import replace

from gpuspawner.troubles.facts import Fact, Happened

log = logging.getLogger(__name__)

MOST_FACTS = 50_000
"""How many facts a hub has in memory, some 20 MB; older ones are only in the files."""

_DAY = 24 * 3600.0

ServerName = tuple[str, str]
"""The names of its owner and of a server."""


class Record:
    """What has happened, and to which servers something may still happen.

    Attributes:
        facts: What has happened, the oldest first.
        open: The first fact since its start of each server that starts or runs.
    """

    def __init__(self, readers: Iterable[Callable[[Fact], None]] = ()) -> None:
        self.facts = deque[Fact](maxlen=MOST_FACTS)
        self.open: dict[ServerName, Fact] = {}
        self._refused = deque[Fact](maxlen=MOST_FACTS)
        self._started: set[ServerName] = set()
        self._readers = list(readers)
        # What is noted until the files are read, in order, and whether the readers know it.
        self._early: deque[tuple[Fact, bool]] | None = deque(maxlen=MOST_FACTS)
        self._untold: dict[ServerName, Fact] = {}

    def read_by(self, reader: Callable[[Fact], None]) -> None:
        """Let *reader* know each fact from now on, once."""
        self._readers.append(reader)

    def restore(self, earlier: Iterable[Fact]) -> list[Fact]:
        """Take over facts that earlier hubs have kept; return what `tell` has to tell.

        The earlier facts aren't told again. What has to be told are ends that were noted before
        this call: until then, nobody knows whether such a server has ended or never began.
        What has been noted since follows in that order, and not by time: clocks may be set back.
        """
        early, self._early = self._early or (), None
        for known in (self.facts, self.open, self._started, self._refused):
            known.clear()
        untold: list[Fact] = []
        for fact, is_told in chain(((it, True) for it in earlier), early):
            if (taken := self._take(fact)) is not None:
                self.facts.append(taken)
                if not is_told:
                    untold.append(taken)
        return untold

    def refusals(self, now: float) -> tuple[tuple[str, int], ...]:
        """Return the reasons for which starts were refused in the last day, and how often each was.

        The most frequent is first.
        """
        first = now - _DAY
        while self._refused and self._refused[0].at < first:
            self._refused.popleft()
        # A clock that was wrong for a while may have left others between them.
        lately = (it.reason for it in self._refused if first <= it.at <= now)
        return tuple(Counter(lately).most_common())

    @property
    def unproven_ends(self) -> list[Fact]:
        """Ends that were noted before `restore` of servers of which it isn't known if they began.

        A later hub knows it from its files.
        """
        return [fact for fact, is_known in self._early or () if not is_known]

    async def tell(self, facts: Iterable[Fact]) -> None:
        """Tell the readers of ends, each in a turn of its own: they may be those of all servers.

        A reader checks an event against its schema, and an administrator's handler may take longer.
        If one of these servers starts again meanwhile, its end is told first. If this is cancelled,
        all that is left is told at once.
        """
        self._untold = {(it.user, it.server): it for it in facts}
        everybody = list(self._untold)
        try:
            for server in everybody:
                self._tell_end(server)
                await asyncio.sleep(0)
        finally:
            for server in everybody:
                self._tell_end(server)

    def note(self, fact: Fact) -> None:
        """Note a fact, and tell the readers, unless it says nothing new."""
        taken = self._take(fact)
        if taken is not None:
            self.facts.append(taken)
            self._tell_end((fact.user, fact.server))
            self._tell(taken)
        if self._early is None:
            return
        if taken is not None:
            self._early.append((taken, True))
        elif fact.happened is Happened.ENDED:
            self._early.append((fact, False))

    def _tell_end(self, server: ServerName) -> None:
        """Tell that an earlier server of this name has ended, unless that has been told."""
        if (end := self._untold.pop(server, None)) is not None:
            self._tell(end)

    def _tell(self, fact: Fact) -> None:
        for reader in self._readers:
            try:
                reader(fact)
            except Exception:  # the others, and whoever notes it, go on
                log.exception("Can't tell that a server was %s", fact.happened)

    def _take(self, fact: Fact) -> Fact | None:
        """Return a fact with what is known of its server; None if it is known already.

        The hub clears a server's state more often than the server ends, and takes each server as up
        again when it restarts.
        """
        server = fact.user, fact.server
        match fact.happened:
            case Happened.GRANTED:
                self._started.discard(server)
                self.open[server] = fact
            case Happened.STARTED:
                if server in self._started:
                    return None
                self._started.add(server)
                begun = self.open.setdefault(server, fact)
                return _as_granted(fact, begun)
            case Happened.ENDED:
                self._started.discard(server)
                begun_or_none = self.open.pop(server, None)
                if begun_or_none is None:
                    return None
                lasted = max(0.0, fact.at - begun_or_none.at)  # clocks may be set back
                return replace(_as_granted(fact, begun_or_none), seconds=lasted)
            case Happened.REFUSED:
                self._refused.append(fact)
            case _:
                pass
        return fact


def _as_granted(fact: Fact, begun: Fact) -> Fact:
    """Say what a server has, if only its start knew."""
    if fact.accelerator:
        return fact
    return replace(fact, accelerator=begun.accelerator, gpus=begun.gpus)


# Which starts would have been refused with ``preflight: warn``, and what became of them.


class RefusalReport(msgspec.Struct, frozen=True):
    """What became of the starts that would have been refused.

    Attributes:
        since, until: The times of the first and last fact, in seconds since 1970; 0 without any.
        starts: How many starts there were, refused ones included.
        refused: How many were refused.
        overruled: How many would have been.
        by_reason: The same by reason, the most frequent first.
        failed: How many of these never became a server.
        waited: For how many seconds their owners waited, all together.
        started: How many became a server after all.
    """

    since: float = 0.0
    until: float = 0.0
    starts: int = 0
    refused: int = 0
    overruled: int = 0
    by_reason: tuple[tuple[str, int], ...] = ()
    failed: int = 0
    waited: float = 0.0
    started: int = 0


def report(facts: Iterable[Fact]) -> RefusalReport:
    """Count; the facts are in the order in which they happened.

    A start that goes on still is neither failed nor started.
    """
    counts = Counter[Happened]()
    reasons = Counter[str]()
    since = until = waited = 0.0
    failed = started = 0
    begins: set[tuple[str, str]] = set()
    followed: set[tuple[str, str]] = set()
    for fact in facts:
        since, until = since or fact.at, fact.at
        server = fact.user, fact.server
        counts[fact.happened] += 1
        match fact.happened:
            case Happened.OVERRULED:
                reasons[fact.reason] += 1
                begins.add(server)
            case Happened.GRANTED if server in begins:
                begins.remove(server)
                followed.add(server)
            case Happened.GRANTED:  # no earlier start goes on, even if its end isn't known
                followed.discard(server)
            case Happened.STARTED if server in followed:
                started += 1
                followed.remove(server)
            case Happened.ENDED if server in followed:
                failed, waited = failed + 1, waited + fact.seconds
                followed.remove(server)
            case _:
                pass
    return RefusalReport(
        since,
        until,
        starts=counts[Happened.GRANTED] + counts[Happened.REFUSED],
        refused=counts[Happened.REFUSED],
        overruled=counts[Happened.OVERRULED],
        by_reason=tuple(reasons.most_common()),
        failed=failed,
        waited=waited,
        started=started,
    )
