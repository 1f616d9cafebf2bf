"""The application `gpuspawner`, with subcommands as JupyterHub's own applications have them."""

import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from traitlets.config import Application

from gpuspawner import __version__
from gpuspawner.doctor.capacity import Capacity
from gpuspawner.doctor.command import MISUSED, NO_FLAGS, Command
from gpuspawner.doctor.doctor import Doctor
from gpuspawner.doctor.explain import Explain
from gpuspawner.doctor.report import RecordReport
from gpuspawner.doctor.shipped import Rbac, Values
from gpuspawner.doctor.warm import Warm


def _made(command: type[Command]) -> tuple[Callable[[Application], Command], str]:
    """Make a command without making it a singleton, which would outlive a test."""
    return lambda parent: command(parent=parent), (command.__doc__ or "").strip().splitlines()[0]


SUBCOMMANDS = {
    "doctor": _made(Doctor),
    "capacity": _made(Capacity),
    "explain": _made(Explain),
    "report": _made(RecordReport),
    "warm": _made(Warm),
    "rbac": _made(Rbac),
    "values": _made(Values),
}


class GPUSpawnerApp(Application):
    """Questions about a hub with gpuspawner and about its cluster, and files to install it."""

    name = "gpuspawner"
    version = __version__
    description = __doc__
    subcommands: Any = SUBCOMMANDS
    aliases: Any = NO_FLAGS
    flags: Any = NO_FLAGS

    def start(self) -> None:
        """Run the subcommand."""
        if self.subapp is None:
            self.print_help()
            self.exit(MISUSED)
        super().start()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand, and return its exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may know no arrows
    try:
        return _run(None if arguments is None else list(arguments))
    except BrokenPipeError:  # the reader has seen enough
        # As Python's documentation advises, so that its own last flush doesn't fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run(arguments: list[str] | None) -> int:
    app = GPUSpawnerApp()
    try:
        app.initialize(arguments)
    except SystemExit as ended:  # traitlets ends with 1 if it doesn't understand the arguments
        return MISUSED if ended.code else 0
    try:
        app.start()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else MISUSED
    finally:
        sys.stdout.flush()
    return 0
