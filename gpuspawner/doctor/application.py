"""The application `gpuspawner`, with subcommands as JupyterHub's own applications have them.

It imports nothing of a hub: whoever wants only `rbac` or `values` need not wait for JupyterHub.
"""

import io
import logging
import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from shlex import quote
from typing import Any, ClassVar

from traitlets import Bool, TraitType
from traitlets.config import Application
from traitlets.utils.importstring import import_item

from gpuspawner import __version__
from gpuspawner.doctor import terminal

_NO_FLAGS: dict[str, object] = {}

_MISUSED = 3
"""The exit status if a command can't be understood, or can't do its work."""


class UsageError(Exception):
    """The command line asks for something that doesn't exist."""


class Command(Application):
    """Base class of the subcommands; each of their traits is an option, unless it is a flag."""

    version = __version__
    log_level = logging.ERROR
    aliases: Any = _NO_FLAGS
    flags: Any = _NO_FLAGS
    takes_words: ClassVar[bool] = False
    """Whether words beside the options mean anything."""
    misuses: ClassVar[tuple[type[Exception], ...]] = (UsageError,)
    """Errors that are the user's, and are told in one line without a traceback."""

    def __init_subclass__(cls) -> None:
        """Name each option after its trait, `--hub-api` after `hub_api`, or as the tag *option*."""
        super().__init_subclass__()
        options = {
            trait.metadata.get("option", name.replace("_", "-")): f"{cls.__name__}.{name}"
            for name, trait in vars(cls).items()
            if isinstance(trait, TraitType) and not isinstance(trait, Bool)
        }
        cls.aliases = {**cls.aliases, **options}

    def start(self) -> None:
        """Run, and end with the exit status."""
        _log_with(self.log)
        try:
            # Outside of an event loop, so that `configure` in the file starts nothing.
            with terminal.reserved():
                self._refuse_unknown()
                status = self.run()
        except self.misuses as error:
            terminal.complain(f"gpuspawner {self.name}: {error}")
            status = _MISUSED
        except KeyboardInterrupt:
            status = 130
        except BrokenPipeError:
            raise
        except Exception:  # noqa: BLE001 - a fault of ours must not look like a finding
            traceback.print_exc()
            status = _MISUSED
        self.exit(status)

    def _refuse_unknown(self) -> None:
        flags, aliases = self.flatten_flags()
        # traitlets reads `--name value` of any name, and drops what it doesn't know.
        given = [it.partition("=")[0] for it in self.argv if re.match("--?[A-Za-z]", it)]
        unknown = [it for it in given if "." not in it and it.lstrip("-") not in {*flags, *aliases}]
        if not self.takes_words:
            unknown += self.extra_args
        if unknown:
            named = " ".join(map(quote, unknown))
            advice = f"`gpuspawner {self.name} --help` lists all options"
            raise UsageError(f"it takes no {named}; {advice}")

    def run(self) -> int:
        """Do the work; return the exit status."""
        raise NotImplementedError


def _log_with(log: logging.Logger) -> None:
    """Leave log lines to ``--Application.log_level``: the commands themselves say what matters."""
    for name in ("gpuspawner", "kubernetes_asyncio"):
        logger = logging.getLogger(name)
        logger.parent = log
        logger.setLevel(log.level)


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
        "Say how many starts were refused, or went on with a warning, and how those ended.",
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
    aliases: Any = _NO_FLAGS
    flags: Any = _NO_FLAGS

    def start(self) -> None:
        """Run the subcommand."""
        if self.subapp is None:
            self.print_help()
            self.exit(_MISUSED)
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
        return _MISUSED if ended.code else 0
    try:
        app.start()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else _MISUSED
    finally:
        sys.stdout.flush()
    return 0
