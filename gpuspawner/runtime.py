"""The objects that a hub process has once: the offers, the live view and the preflight."""

import asyncio
import logging
import math
from collections.abc import Coroutine
from dataclasses import replace
from functools import partial
from typing import Any

from gpuspawner.cluster.client import Client, load_configuration
from gpuspawner.cluster.health import Live, Reading, Unreachable
from gpuspawner.cluster.kinds import KUEUE_KINDS, scaling_kinds
from gpuspawner.cluster.view import ClusterView
from gpuspawner.compat.activity import unused_for
from gpuspawner.kube.recent import Recent
from gpuspawner.launch.avoided import AvoidedNodes
from gpuspawner.launch.farewells import Farewells
from gpuspawner.launch.usual import UsualSteps
from gpuspawner.line.durations import Durations
from gpuspawner.line.kept import KeptPlaces
from gpuspawner.line.line import Key
from gpuspawner.offers.discovery import discover
from gpuspawner.offers.manifest import PodRules
from gpuspawner.offers.offers import Offers
from gpuspawner.policies.accounts import Accounts
from gpuspawner.policies.charges import Meter
from gpuspawner.policies.narrowing import Sizes
from gpuspawner.policies.policies import Policies
from gpuspawner.policies.written import read_policies, read_weights
from gpuspawner.preflight.admitted import AdmittedPreflight
from gpuspawner.preflight.availability import Surveys
from gpuspawner.preflight.dry_run import DryRun
from gpuspawner.preflight.dry_runs import CONNECTIONS, DryRuns
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.scaling.pools import Pools
from gpuspawner.traits import OFFERS
from gpuspawner.traits.settings import (
    Settings,
    configured_offers,
    configured_policies,
    configured_queue,
    gives_gpus,
    scheduling_rules,
)
from gpuspawner.traits.trait_types import AsSet

log = logging.getLogger(__name__)

# How long a dry run may take before the preflight judges the pod without it, in seconds.
DRY_RUN_PATIENCE = 2.0
_MOST_FAILED = 10_000
"""How many servers' last failures a hub remembers."""


class Runtime:
    """The hub's one view of the cluster, and the offers on it.

    Attributes:
        failed_starts: What the next form says of the last start that failed, by the names of its
            owner and its server, until that server's next start.
        offers_nothing: Whether the administrator has configured none of our offers.
        gpus_for_all: Whether every server gets GPUs by `KubeSpawner.extra_resource_limits`, and
            users have nothing to choose. If they could choose among discovered GPUs, those who
            don't choose would lose theirs as soon as a node has one.

    Args:
        settings: The traits.
        view: By default, a new view of the cluster that the traits name.

    Raises:
        OfferError: The offers aren't usable.
    """

    def __init__(self, settings: Settings, view: ClusterView | None = None) -> None:
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
        rules = scheduling_rules(settings)
        scaling = scaling_kinds(settings.autoscaler_status)
        self.view = view or ClusterView(
            load, rules=rules, scaling_kinds=scaling, queue_kinds=KUEUE_KINDS
        )
        for image in self._configured.images.values():
            self.view.state.images.nodes(image.image)  # cheap before there are nodes
        self.client = Client(load, CONNECTIONS)
        self.dry_runs = DryRuns(DryRun(self.client, DRY_RUN_PATIENCE))
        self.pools = Pools(self.view.state, self.view.autoscalers, settings.autoscaling)
        self.policies = configured_policies(settings, self._configured)
        self.queue = configured_queue(settings, self._configured, self.policies)
        self.kept_places = KeptPlaces()
        self.durations = Durations(lambda: self.accounts.ledger.pods, self._unused)
        self.preflight = AdmittedPreflight(
            Preflight(
                self.view,
                pools=self.pools,
                trial=settings.trial_timeout,
                kept=self.kept_places,
                durations=self.durations,
                part_kept_free=self.queue.part_kept_free,
            )
        )
        self.usual_steps = UsualSteps()
        self.avoided = AvoidedNodes()
        self.farewells = Farewells()
        self.failed_starts = Recent[tuple[str, str], str](_MOST_FAILED)
        self.surveys = Surveys(self.view.state, self.preflight.to_come, self.preflight.placements)
        self._weights = settings.gpu_weights
        self.sizes = Sizes(
            read_weights(settings.gpu_weights), settings.memory_requested, settings.cpu_requested
        )
        namespace = "" if settings.enable_user_namespaces else settings.namespace
        self.accounts = Accounts(load, namespace, self.meter, self.view.contact)
        self.accounts.ledger.listen(self.durations.note_end)
        self._discovered = self._configured
        self._discovered_at = -1
        # Users choose something else, so nobody has to configure what the hub discovers.
        self.offers_nothing = not any(getattr(settings, name) for name in OFFERS)
        self._had_choices = not self.offers_nothing
        theirs = settings.profile_list or self._had_choices
        self.gpus_for_all = gives_gpus(settings) and not theirs
        self._is_quiet = (
            self.gpus_for_all
            or bool(settings.profile_list)
            or settings.trait_has_value("options_form")
        )
        self._last_note = ""

    def start(self) -> None:
        """Start reading the cluster, and log which accelerators are discovered.

        Raises:
            RuntimeError: No event loop is running.
        """
        self.view.start()
        if self.policies or self.queue.is_on:
            self.accounts.following.start()
        loop = asyncio.get_running_loop()
        self._tasks = {loop.create_task(it) for it in (self._announce(), self._close_at_the_end())}

    def run(self, beside: Coroutine[Any, Any, None]) -> None:
        """Run something beside the hub, which never raises."""
        task = asyncio.get_running_loop().create_task(beside)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _announce(self) -> None:
        if await self.view.first_list(math.inf):
            _ = self.offers

    async def _close_at_the_end(self) -> None:
        """Close the connections when the hub ends, which cancels all tasks."""
        try:
            await asyncio.Event().wait()
        finally:
            await self.client.close()
            await self.view.events.close()
            await self.accounts.following.stop()

    @property
    def discovers(self) -> bool:
        """Whether accelerators are discovered; if so, there are none before the first list."""
        return not self._configured.accelerators

    @property
    def may_have_choices(self) -> bool:
        """Whether users can choose something among the offers, or could before, or may soon.

        Otherwise they need no form: a hub without GPUs starts servers at once, as KubeSpawner does.
        """
        has_choices = bool(self.offers.accelerators) or self._had_choices
        return has_choices or isinstance(self.view.health(), Reading | Unreachable)

    @property
    def offers(self) -> Offers:
        """The offers as configured, or as discovered from the nodes' current labels."""
        if not self.discovers:
            return self._configured
        if self._discovered_at != self.view.state.version:
            self._discover()
        return self._discovered

    def _unused(self) -> frozenset[Key]:
        """Return the pods of servers that are idle."""
        return unused_for(self.queue.seconds_idle)

    def _discover(self) -> None:
        self._discovered_at = self.view.state.version
        discovery = discover(self.view.state)
        self._discovered = self._configured.with_accelerators(discovery.accelerators)
        self._had_choices = self._had_choices or bool(discovery.accelerators)
        if self._is_quiet or discovery.note == self._last_note:
            return
        if isinstance(self.view.health(), Live):
            self._last_note = discovery.note
            log.info("%s", discovery.note)

    def read_policies(self, written: object) -> Policies:
        """Read policies that the administrator's function has returned.

        Raises:
            OfferError: They aren't usable.
        """
        return read_policies(written, self._weights, self._configured)

    def meter(self) -> Meter:
        """What reads from pods what they take of limits."""
        accelerators = tuple(self.offers.accelerators.values())
        return Meter(self.view.state.rules, accelerators, self.sizes.weights)

    @property
    def display_names(self) -> dict[str, str]:
        """The names of accelerators and images, by key."""
        offers = self.offers
        images = {key: it.display_name for key, it in offers.images.items()}
        return images | {key: it.display_name for key, it in offers.accelerators.items()}

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
    if _runtime is None:
        from gpuspawner.compat import required_names  # brings in the whole hub

        required_names.check()
        made = Runtime(AsSet(settings))
        _log_through_the_hub(settings.log)
        made.start()
        use(made)
        return made
    return _runtime


def running() -> Runtime:
    """Return this process's runtime.

    Raises:
        RuntimeError: There is none yet.
    """
    if _runtime is None:
        raise RuntimeError("gpuspawner isn't configured")
    return _runtime


def use(made: Runtime) -> None:
    """Make *made* this process's runtime."""
    global _runtime  # noqa: PLW0603, there is one per process and this is it
    _runtime = made


def _log_through_the_hub(log: logging.Logger) -> None:
    """Send the package's log lines to the hub's log, as the hub does with tornado's."""
    ours = logging.getLogger("gpuspawner")
    ours.parent = log
    ours.setLevel(log.level)
