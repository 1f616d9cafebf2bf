"""What all commands share: how their options are read, what is a mistake, and their exit status.

It imports nothing of a hub: whoever wants only `rbac` or `values` need not wait for JupyterHub.
"""

import logging
import re
import traceback
from shlex import quote
from typing import Any, ClassVar

from traitlets import Bool, TraitType
from traitlets.config import Application

from gpuspawner import __version__
from gpuspawner.doctor import terminal

NO_FLAGS: dict[str, object] = {}

MISUSED = 3
"""The exit status if a command can't be understood, or can't do its work."""


class UsageError(Exception):
    """The command line asks for something that doesn't exist."""


class Command(Application):
    """Base class of the subcommands; each of their traits is an option, unless it is a flag."""

    version = __version__
    log_level = logging.ERROR
    aliases: Any = NO_FLAGS
    flags: Any = NO_FLAGS
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
            status = MISUSED
        except KeyboardInterrupt:
            status = 130
        except BrokenPipeError:
            raise
        except Exception:  # noqa: BLE001 - a fault of ours must not look like a finding
            traceback.print_exc()
            status = MISUSED
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
