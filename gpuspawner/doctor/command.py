"""What all commands share: their options, the configuration file, and their exit status."""

import asyncio
import logging
import traceback
from pathlib import Path
from shlex import quote
from typing import Any, ClassVar

from traitlets import Enum, Unicode
from traitlets.config import Application, Config

from gpuspawner import __version__
from gpuspawner.cluster.health import Live
from gpuspawner.cluster.log import explain_health
from gpuspawner.configuration import ConfigurationError, load
from gpuspawner.doctor import terminal
from gpuspawner.doctor.hub import Hub, of_files, watching
from gpuspawner.gates.tried import NOBODY, UnusableError
from gpuspawner.kube.files import FileError
from gpuspawner.offers.shapes import OfferError
from gpuspawner.policies.owner import Owner

OF_THE_CHART = Path("/usr/local/etc/jupyterhub/jupyterhub_config.py")
"""The configuration file in the hub pod of Zero to JupyterHub."""

COMMON_ALIASES = {
    ("f", "config"): "Command.config_file",
    ("o", "output"): "Command.output",
}
NO_FLAGS: dict[str, object] = {}

PROFILE_HELP = "The key of an accelerator, the slug of a profile, or options as JSON."

MISUSED = 3
"""The exit status if a command can't be understood, or can't do its work."""


class UsageError(Exception):
    """The command line asks for something that doesn't exist."""


class Command(Application):
    """Base class of the subcommands."""

    version = __version__
    log_level = logging.ERROR

    config_file = Unicode(
        help="""
        The hub's configuration file, which is executed. By default, that of Zero to JupyterHub if
        it exists, else jupyterhub_config.py.
        """,
    ).tag(config=True)

    output = Enum(["text", "json"], "text", help="Print text, or JSON for programs.").tag(
        config=True
    )

    aliases: Any = COMMON_ALIASES
    flags: Any = NO_FLAGS
    takes_words: ClassVar[bool] = False
    """Whether words beside the options mean anything."""

    def start(self) -> None:
        """Run, and end with the exit status."""
        _log_with(self.log)
        try:
            # Outside of an event loop, so that `configure` in the file starts nothing.
            with terminal.reserved():
                self._refuse_unknown()
                status = self.run()
        except (ConfigurationError, OfferError, FileError, UnusableError, UsageError) as error:
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
        _, known = self.flatten_flags()
        # traitlets reads `--name=value` of any name, and drops what it doesn't know.
        given = (it.partition("=")[0] for it in self.argv if it.startswith("-") and "=" in it)
        unknown = [it for it in given if "." not in it and it.lstrip("-") not in known]
        if not self.takes_words:
            unknown += self.extra_args
        if unknown:
            named = " ".join(map(quote, unknown))
            advice = f"`gpuspawner {self.name} --help` lists all options"
            raise UsageError(f"it takes no {named}; {advice}")

    def run(self) -> int:
        """Do the work; return the exit status."""
        raise NotImplementedError

    @property
    def path(self) -> Path:
        """The configuration file."""
        if self.config_file:
            return Path(self.config_file)
        return OF_THE_CHART if OF_THE_CHART.exists() else Path("jupyterhub_config.py")


class FromFiles(Command):
    """A command that also works without a cluster, on files."""

    files = Unicode(
        help="""
        A folder with the output of `kubectl get nodes -o json` in nodes.json, and so on, to use
        instead of the cluster.
        """,
    ).tag(config=True)

    aliases: Any = {**COMMON_ALIASES, "from": "FromFiles.files"}  # noqa: RUF012, as traitlets has it

    def run(self) -> int:
        """Ask the hub; return the exit status."""
        return asyncio.run(self._run(load(self.path)))

    async def _run(self, config: Config) -> int:
        if self.files:
            return await self.ask(of_files(config, Path(self.files), self.owner))
        async with watching(config, self.owner) as hub:
            if not isinstance(hub.view.health(), Live):
                raise UsageError(explain_health(hub.view.health()))
            return await self.ask(hub)

    @property
    def owner(self) -> Owner:
        """Whose server it asks about."""
        return NOBODY

    async def ask(self, hub: Hub) -> int:
        """Answer; return the exit status."""
        raise NotImplementedError


def _log_with(log: logging.Logger) -> None:
    """Leave log lines to ``--Application.log_level``: the commands themselves say what matters."""
    for name in ("gpuspawner", "kubernetes_asyncio"):
        logger = logging.getLogger(name)
        logger.parent = log
        logger.setLevel(log.level)
