"""The objects that a hub process has once: the offers, the live view and the preflight."""

import asyncio
import logging
import math
from dataclasses import replace
from functools import partial
from typing import Protocol

from gpuspawner.admission.dry_run import DryRun
from gpuspawner.admission.dry_runs import CONNECTIONS, DryRuns
from gpuspawner.availability import Surveys
from gpuspawner.cluster.client import Client, load_configuration
from gpuspawner.cluster.health import Live
from gpuspawner.cluster.view import ClusterView
from gpuspawner.discovery import discover
from gpuspawner.manifest import PodRules
from gpuspawner.offers import Offers
from gpuspawner.preflight.admitted import AdmittedPreflight
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.scheduling import Rules
from gpuspawner.traits import OFFERS

log = logging.getLogger(__name__)

# How long a dry run may take before the preflight judges the pod without it, in seconds.
DRY_RUN_PATIENCE = 2.0


class Settings(Protocol):
    """GPUSpawner's traits, on a spawner or read from a configuration."""

    log: logging.Logger
    memory_requested: float
    cpu_requested: float
    cpu_environment: dict[str, str]
    keep_cpu_servers_off_accelerators: bool
    scheduler_version: str | None
    default_filter_schedulers: list[str]
    k8s_api_host: str
    k8s_api_ssl_ca_cert: str
    k8s_api_verify_ssl: bool | None


def configured_offers(settings: Settings) -> Offers:
    """Read the offers.

    Raises:
        OfferError: They aren't usable.
    """
    return Offers.parse(**{name: getattr(settings, name) for name in OFFERS})


class Runtime:
    """The hub's one view of the cluster, and the offers on it.

    Raises:
        OfferError: The offers aren't usable.
    """

    def __init__(self, settings: Settings) -> None:
        self._configured = configured_offers(settings)
        self._rules = PodRules(
            cpu_environment=dict(settings.cpu_environment),
            memory_requested=settings.memory_requested,
            cpu_requested=settings.cpu_requested,
        )
        self._keep_off = settings.keep_cpu_servers_off_accelerators
        load = partial(
            load_configuration,
            settings.k8s_api_host,
            settings.k8s_api_ssl_ca_cert,
            settings.k8s_api_verify_ssl,
        )
        rules = partial(Rules.of_version, schedulers=tuple(settings.default_filter_schedulers))
        version = settings.scheduler_version
        self.view = ClusterView(load, rules=rules if version is None else rules(version))
        self._client = Client(load, CONNECTIONS)
        self.dry_runs = DryRuns(DryRun(self._client, DRY_RUN_PATIENCE))
        self.preflight = AdmittedPreflight(Preflight(self.view))
        self.surveys = Surveys(self.view.state)
        self._discovered = self._configured
        self._discovered_at = -1
        self._last_note = ""

    def start(self) -> None:
        """Start reading the cluster, and log which accelerators are discovered.

        Raises:
            RuntimeError: No event loop is running.
        """
        self.view.start()
        loop = asyncio.get_running_loop()
        self._tasks = loop.create_task(self._announce()), loop.create_task(self._close_at_the_end())

    async def _announce(self) -> None:
        if await self.view.first_list(math.inf):
            _ = self.offers

    async def _close_at_the_end(self) -> None:
        """Close the connections when the hub ends, which cancels all tasks."""
        try:
            await asyncio.Event().wait()
        finally:
            await self._client.close()

    @property
    def discovers(self) -> bool:
        """Whether accelerators are discovered; if so, there are none before the first list."""
        return not self._configured.accelerators

    @property
    def offers(self) -> Offers:
        """The offers as configured, or as discovered from the nodes' current labels."""
        if not self.discovers:
            return self._configured
        if self._discovered_at != self.view.state.version:
            self._discover()
        return self._discovered

    def _discover(self) -> None:
        self._discovered_at = self.view.state.version
        discovery = discover(self.view.state)
        self._discovered = self._configured.with_accelerators(discovery.accelerators)
        if discovery.note != self._last_note and isinstance(self.view.health(), Live):
            self._last_note = discovery.note
            log.info("%s", discovery.note)

    def pod_rules(self, offers: Offers) -> PodRules:
        """The rules for every pod while *offers* are on offer."""
        accelerators = tuple(offers.accelerators.values())
        avoided = accelerators if self._keep_off else ()
        return replace(self._rules, accelerators=accelerators, cpu_avoids=avoided)


_runtime: Runtime | None = None


def current(settings: Settings) -> Runtime:
    """Return this process's runtime; the first call makes it from *settings* and starts the view.

    Raises:
        IncompatibleError: The installed JupyterHub or KubeSpawner can't be used.
        OfferError: The offers aren't usable.
        RuntimeError: No event loop is running.
    """
    global _runtime  # noqa: PLW0603, there is one per process and this is it
    if _runtime is None:
        from gpuspawner.compat import required_names  # brings in the whole hub

        required_names.check()
        made = Runtime(settings)
        _log_through_the_hub(settings.log)
        made.start()
        _runtime = made
    return _runtime


def _log_through_the_hub(log: logging.Logger) -> None:
    """Send the package's log lines to the hub's log, as the hub does with tornado's."""
    ours = logging.getLogger("gpuspawner")
    ours.parent = log
    ours.setLevel(log.level)
