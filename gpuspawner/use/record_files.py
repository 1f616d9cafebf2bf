"""Keeps the record in files, one for each day, each fact in a line of JSON.

A hub that is killed leaves at most one torn line, and loses what it noted in the last second.
"""

import asyncio
import fcntl
import logging
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import TypeVar

import msgspec

from gpuspawner.troubles.facts import Fact, Happened
from gpuspawner.use.daemon_threads import aside
from gpuspawner.use.record import MOST_FACTS

log = logging.getLogger(__name__)
T = TypeVar("T")

_NAME, _PATTERN = "facts-%Y-%m-%d.jsonl", "facts-*.jsonl"
_MOST_BYTES = 32 * 2**20
"""The most of one day, some 150,000 facts: a script that starts servers in a loop takes no more."""
_WITHOUT_SERVER = frozenset(
    {Happened.REFUSED, Happened.OVERRULED, Happened.JOINED, Happened.CALLED, Happened.LEFT}
)
"""What a script can repeat fastest, because it happens before there is a server."""
_BEGINNINGS = tuple(f'{{"happened":"{it.value}"'.encode() for it in _WITHOUT_SERVER)
"""How the lines of such facts begin: thousands needn't be decoded."""
_PARTS = {**dict.fromkeys(_WITHOUT_SERVER, 0.5), Happened.KEPT: 1.0, Happened.USED: 1.0}
"""Up to which part of its room a day takes such facts. The next hub needs all of the last two: it
warns of servers if it doesn't know that their owners keep them."""
_PART = 0.95
"""The same for all other facts."""
_MOST_OF_ALL = 256 * 2**20
"""The most of all days: the chart's volume has 1 GiB, and the hub's database is on it, too."""
_MODE = 0o600
_DAY = 24 * 3600.0
_SECONDS = 1.0
"""How long a fact waits for others before it is written."""
_LAST_SECONDS = 2.0
"""How long the hub's end waits for a disk."""


class FactFiles:
    """The files of one directory.

    Args:
        days: For how many days a file is kept, as far as there is room.
    """

    def __init__(self, directory: str | Path, days: int) -> None:
        self._directory = Path(directory)
        self._days = days
        self._full: set[tuple[Path, float]] = set()  # of these, it is logged

    def append(self, facts: list[Fact]) -> None:
        """Add facts to their days' files, and remove files that are too old, or for their room.

        Raises:
            OSError: They can't be written.
        """
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        by_part: dict[tuple[Path, float], list[Fact]] = {}
        for fact in facts:
            key = self._directory / _name(fact.at), _PARTS.get(fact.happened, _PART)
            by_part.setdefault(key, []).append(fact)
        with self._locked():
            for (path, part), its in by_part.items():
                if not path.exists():
                    self._make_room()
                lines = b"".join(msgspec.json.encode(it) + b"\n" for it in its)
                if not _append(path, lines, int(part * _MOST_BYTES)):
                    self._name_full(path, part, its[0].happened)

    def _name_full(self, path: Path, part: float, happened: Happened) -> None:
        """Log once that a day takes no more of such facts: those of other kinds may be written."""
        if (path, part) not in self._full:
            self._full.add((path, part))
            text = "gpu_use.directory: %s has no room for facts like %r until the next day"
            log.warning(text, path, happened.value)

    def read(self, most: int) -> list[Fact]:
        """Return the newest facts, in order, of as many days as together have *most* of them.

        What happens without a server counts apart, so that it pushes nothing else out. Lines and
        files that can't be read are left out.

        Raises:
            OSError: The directory can't be read.
        """
        of_servers: list[Fact] = []
        others: list[Fact] = []
        for path in reversed(self._paths()):
            if path.name < self._first or len(of_servers) >= most:
                break
            try:
                found = _facts(path.read_bytes(), _BEGINNINGS if len(others) >= most else ())
            except OSError as error:
                log.warning("gpu_use.directory: a day is left out: %s", error)
                continue
            of_servers += (it for it in found if it.happened not in _WITHOUT_SERVER)
            others += (it for it in found if it.happened in _WITHOUT_SERVER)
        return sorted(of_servers + others, key=lambda it: it.at)

    def since(self, at: float) -> Iterator[Fact]:
        """Yield the facts since a time in order, with those of one day in memory.

        Lines that nobody can read are left out.

        Raises:
            OSError: The directory, or a file of these days, can't be read.
        """
        first = max(self._first, _name(max(0.0, at)))
        for path in self._paths():
            if path.name >= first:
                found = (it for it in _facts(path.read_bytes()) if it.at >= at)
                yield from sorted(found, key=lambda it: it.at)

    def forget(self, user: str) -> int:
        """Remove all that is kept of a user; return how many facts that were.

        Lines that nobody can read go, too: a torn one may be the user's, and nobody misses it.

        Raises:
            OSError: A file can't be read or written.
        """
        removed, ours = 0, _Owned(user)
        if not self._paths():
            return 0  # and no lock is made, which may be root's
        with self._locked():
            for path in self._paths():
                lines = path.read_bytes().splitlines(keepends=True)
                owners = [_read(it, _Owned) for it in lines]
                left = [line for line, it in zip(lines, owners, strict=True) if it and it != ours]
                if len(left) < len(lines):
                    removed += owners.count(ours)
                    # In place: root's copy would shut the hub out, a full disk has no room for
                    # one, and a kill would leave it. Here, a kill costs others at most one line.
                    with path.open("r+b") as file:
                        file.write(b"".join(left))
                        file.truncate()
        return removed

    def _paths(self) -> list[Path]:
        """Return all files, the oldest first; `glob` finds none if it may not read a folder.

        Raises:
            OSError: The directory can't be read.
        """
        try:
            return sorted(it for it in self._directory.iterdir() if it.match(_PATTERN))
        except FileNotFoundError:
            return []

    @property
    def _first(self) -> str:
        """The name of the oldest file that is kept."""
        return _name(time.time() - self._days * _DAY)

    def _make_room(self) -> None:
        """Remove what is too old, and the oldest of what leaves no room for a new, full day."""
        room = _MOST_OF_ALL - _MOST_BYTES
        for path in reversed(self._paths()):
            room -= path.stat().st_size
            if (is_kept := path.name >= self._first) and room < 0:
                most = f"all together may take {_MOST_OF_ALL // 2**20} MiB"
                log.warning("gpu_use.directory: %s is removed early: %s", path, most)
            if not is_kept or room < 0:
                path.unlink(missing_ok=True)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Let no other process write: a command may remove a user's facts while the hub runs."""
        with (self._directory / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _name(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime(_NAME)


def _append(path: Path, lines: bytes, most: int) -> bool:
    """Add lines to a file of at most so many bytes; return False if it is full."""
    with path.open("a+b") as file:
        path.chmod(_MODE)
        size = file.tell()
        if size + len(lines) > most:
            return False
        file.seek(max(0, size - 1))
        is_torn = size and file.read() != b"\n"
        file.write(b"\n" + lines if is_torn else lines)
        return True


def _facts(lines: bytes, skipped: tuple[bytes, ...] = ()) -> list[Fact]:
    """Return the facts on these lines, without those that begin so."""
    kept = (it for it in lines.splitlines() if not it.startswith(skipped))
    return [fact for it in kept if (fact := _read(it, Fact))]


class _Owned(msgspec.Struct):
    """A fact, also one of a newer version: whose it is."""

    user: str = ""


def _read(line: bytes, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


class Writer:
    """Writes facts beside the hub, some at a time, and never lets the hub wait."""

    def __init__(self, files: FactFiles) -> None:
        self._files = files
        self._waiting = deque[Fact](maxlen=MOST_FACTS)  # a disk may hang
        self._has_failed = False

    def write(self, fact: Fact) -> None:
        """Have a fact written soon."""
        self._waiting.append(fact)

    async def run(self) -> None:
        """Write until this is cancelled."""
        while True:
            await asyncio.sleep(_SECONDS)
            if self._waiting:
                with self._named_once():
                    await aside(self._files.append, self._taken())

    def finish(self) -> None:
        """Write what is left; by the lock, this also waits for what is being written right now."""
        with self._named_once():
            last = Thread(target=self._append, args=(self._taken(),), daemon=True)
            last.start()
            last.join(_LAST_SECONDS)

    def _taken(self) -> list[Fact]:
        facts = list(self._waiting)
        self._waiting.clear()
        return facts

    def _append(self, facts: list[Fact]) -> None:
        with self._named_once():
            self._files.append(facts)

    @contextmanager
    def _named_once(self) -> Iterator[None]:
        """Log once why facts can't be written: because of a file, a fact, or no more threads."""
        try:
            yield
        except Exception as error:  # noqa: BLE001, later facts may be written
            if not self._has_failed:  # once, and not each second
                log.warning("gpu_use.directory: the record is in memory only: %s", error)
            self._has_failed = True
        else:
            self._has_failed = False
