"""What the commands about a hub share: its configuration file, and whether they ask its cluster."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from traitlets import Enum, Unicode
from traitlets.config import Config

from gpuspawner.cluster.health import Live
from gpuspawner.cluster.health_log import explain_health
from gpuspawner.configuration import ConfigurationError, load
from gpuspawner.doctor import terminal
from gpuspawner.doctor.application import Command, UsageError
from gpuspawner.doctor.hub import Hub, of_files, watching
from gpuspawner.gates.what_if import NOBODY, UnusableError
from gpuspawner.kube.files import FileError
from gpuspawner.offers.shapes import OfferError
from gpuspawner.policies.owner import Owner

OF_THE_CHART = Path("/usr/local/etc/jupyterhub/jupyterhub_config.py")
"""The configuration file in the hub pod of Zero to JupyterHub."""

PROFILE_HELP = "The key of an accelerator, the slug of a profile, or options as JSON."


class HubCommand(Command):
    """A command about a hub, which executes its configuration file."""

    config_file = Unicode(
        help="""
        The hub's configuration file, which is executed. By default, that of Zero to JupyterHub if
        it exists, else jupyterhub_config.py.
        """,
    ).tag(config=True, option=("f", "config"))

    output = Enum(["text", "json"], "text", help="Print text, or JSON for programs.").tag(
        config=True, option=("o", "output")
    )

    misuses: ClassVar[tuple[type[Exception], ...]] = (
        *Command.misuses,
        ConfigurationError,
        FileError,
        OfferError,
        UnusableError,
    )

    @property
    def path(self) -> Path:
        """The configuration file."""
        if self.config_file:
            return Path(self.config_file)
        return OF_THE_CHART if OF_THE_CHART.exists() else Path("jupyterhub_config.py")

    def answer(self, plain: object, tell: Callable[[], None]) -> None:
        """Print an answer: as JSON for programs, or as *tell* does."""
        if self.output == "json":
            terminal.say_json(plain)
        else:
            tell()


class FromFiles(HubCommand):
    """A command that also works without a cluster, on files."""

    files = Unicode(
        help="""
        A folder to use instead of the cluster. It has the output of `kubectl get nodes -o json` in
        nodes.json, and so on. What depends on a kind without a file is unknown, but without their
        files, there is no Karpenter, no Kueue and no autoscaler of OpenShift's.
        """,
    ).tag(config=True, option="from")

    def run(self) -> int:
        """Ask the hub; return the exit status."""
        return asyncio.run(self._run(load(self.path)))

    async def _run(self, config: Config) -> int:
        if self.files:
            return await self.ask(of_files(config, Path(self.files), self.owner))
        async with watching(config, self.owner, self.owner) as hub:
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
