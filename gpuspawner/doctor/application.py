"""The application `gpuspawner`, with subcommands as JupyterHub's own applications have them."""

import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from traitlets.config import Application
from traitlets.utils.importstring import import_item

from gpuspawner import __version__
from gpuspawner.doctor.command import MISUSED, NO_FLAGS, Command


def _command(path: str, what: str) -> tuple[Callable[[Application], Command], str]:
    """Return how to make a command, and the first sentence of its help.

    It isn't made as a singleton, which would outlive a test. It is imported only when it is asked
    for: most commands need JupyterHub, which takes a second or more.
    """
    return lambda parent: import_item(f"gpuspawner.doctor.{path}")(parent=parent), what


SUBCOMMANDS = {
    "doctor": _command(
        "doctor.Doctor", "Check the configuration, the hub's rights and the cluster."
    ),
    "capacity": _command(
        "capacity.Capacity", "Show which GPUs are free, by accelerator or profile and by node."
    ),
    "explain": _command(
        "explain.Explain", "Explain why a server or a Pending pod has no room, node by node."
    ),
    "report": _command(
        "report.RecordReport",
        "Say which starts were refused, or would have been, and what became of them.",
    ),
    "warm": _command(
        "warm.Warm", "Print placeholder pods that keep room for servers, for kubectl."
    ),
    "rbac": _command(
        "helm_values.Rbac", "Print the rights that a hub needs to read the cluster, for kubectl."
    ),
    "values": _command(
        "helm_values.Values", "Print values for the Zero-to-JupyterHub chart, for Helm."
    ),
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
