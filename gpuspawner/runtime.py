"""The objects that a hub process has once: the offers, the live view and the preflight."""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from gpuspawner.cluster.background import TurnsToLook
from gpuspawner.cluster.client import Client, ConfigurationFactory, load_configuration
from gpuspawner.cluster.health import Live, Reading, Unreachable
from gpuspawner.cluster.kinds import KUEUE_KINDS, scaling_kinds
from gpuspawner.cluster.view import ClusterView
from gpuspawner.kube.meta import Key
from gpuspawner.kube.servers import ServerPod
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.manifest import PodRules
from gpuspawner.offers.offers import Offers
from gpuspawner.preflight.availability import Surveys
from gpuspawner.preflight.dry_runs import CONNECTIONS, DryRun, DryRuns
from gpuspawner.preflight.nobody_waits import nobody_waits
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
from gpuspawner.troubles.avoided_nodes import AvoidedNodes
from gpuspawner.troubles.ending import Farewells
from gpuspawner.troubles.facts import Fact, Happened
from gpuspawner.troubles.steps import UsualSteps

if TYPE_CHECKING:
    from gpuspawner.cluster.unwatched_objects import RuntimeClasses
    from gpuspawner.line.hub_line import HubLine
    from gpuspawner.line.queue_config import QueueRules
    from gpuspawner.policies.accounts import Accounts
    from gpuspawner.policies.hub_policies import HubPolicies
    from gpuspawner.policies.policies import Policies

log = logging.getLogger(__name__)

# How long a dry run may take before the preflight judges the pod without it, in seconds.
DRY_RUN_PATIENCE = 2.0


class Runtime:
    """The hub's one view of the cluster, and the offers on it.

    Attributes:
        policies: The administrator's policies; None without any, or for commands that leave them
            aside.
        line: The line of those who wait for room; None without one.
        accounts: What servers take; None if nothing needs it.
        turns: Those of starts whose pods wait for a node.
        record: Keeps what happens to servers; None if nobody does.
        failed_starts: What the next form says of the last start that failed, until the same
            server's next start; see `gpuspawner.launch.failed_starts`.
        offers_nothing: Whether the administrator has configured none of our offers.
        gpus_for_all: Whether every server gets GPUs by `KubeSpawner.extra_resource_limits`, and
            users have nothing to choose: who chose none of the discovered GPUs would have one all
            the same.

    Args:
        settings: The traits.
        view: By default, a new view of the cluster that the traits name.

    Raises:
        OfferError: The offers aren't usable.
    """

    def __init__(self, settings: Settings, view: ClusterView | None = None) -> None:
        self._configured = configured_offers(settings)
        is_theirs = settings.trait_has_value("cpu_environment")  # before its default is read
        self._rules = PodRules(
            cpu_environment=dict(settings.cpu_environment),
            keeps_environment=self.discovers and not is_theirs,
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
        policies = configured_policies(settings, self._configured)
        queue = configured_queue(settings, self._configured, policies)
        self.line = self._make_line(queue) if queue is not None else None
        self.preflight = Preflight(
            self.view,
            pools=self.pools,
            line=self.line.make_line if self.line is not None else nobody_waits,
        )
        self.turns = TurnsToLook(self.view.wake)
        self.usual_steps = UsualSteps()
        self.avoided = AvoidedNodes()
        self.farewells = Farewells()
        self.failed_starts = WeakKeyDictionary[object, str]()
        placements = self.preflight.learned.placements
        self.surveys = Surveys(self.view.state, self.preflight.to_come, placements)
        self.record: Callable[[Fact], None] | None = None
        self._tasks = set[asyncio.Task[None]]()
        self._closing: asyncio.Task[None] | None = None
        self._names: dict[tuple[int, str], str] = {}  # of owners, by their ids and their servers
        self.accounts: Accounts | None = None
        self.policies: HubPolicies | None = None
        self._shows_use = settings.gpu_use is not False
        if policies or self.line is not None or self._shows_use:
            self._count_servers(policies, settings, load)
        self._discovered = self._configured
        self._discovered_at = -1
        self._runtime_classes: RuntimeClasses | None = None
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

    def _make_line(self, rules: "QueueRules") -> "HubLine":
        from gpuspawner.line.hub_line import HubLine  # only hubs with a line load it

        return HubLine(rules, self._servers)

    def _count_servers(
        self,
        policies: "Policies | Callable[..., Any] | None",
        settings: Settings,
        load: ConfigurationFactory,
    ) -> None:
        """Count what servers take. Only policies, the line and `gpu_use` need it, and load it."""
        from gpuspawner.policies.hub_policies import HubPolicies
        from gpuspawner.policies.policies import Policies
        from gpuspawner.policies.policy_gates import ByPolicies

        given = policies or Policies()
        made = HubPolicies(self, given, settings, self._configured, load, ByPolicies)
        self.accounts = made.accounts
        self.policies = made if policies else None

    def start(self) -> None:
        """Start reading the cluster, and log which accelerators are discovered.

        Raises:
            RuntimeError: No event loop is running.
        """
        self.view.start()
        # A command that judges nobody by policies has set them aside.
        is_read = self.policies is not None or self.line is not None or self._shows_use
        if self.accounts is not None and is_read:
            self.accounts.following.start()
        self._closing = self.run(self._close_at_the_end())
        if self.discovers:
            from gpuspawner.cluster.unwatched_objects import RuntimeClasses

            self._runtime_classes = RuntimeClasses(self.client)
            self.run(self._learn(self._runtime_classes))
        self.run(self._announce())

    def run(self, beside: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Begin a task beside the hub, which never raises; return it."""
        task = asyncio.get_running_loop().create_task(beside)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def note(
        self, happened: Happened, spawner: Any, grant: Grant | None = None, **what: Any
    ) -> None:
        """Note what has happened to a spawner's server. Never raises.

        *what* are the other attributes of a `Fact`.
        """
        if self.record is None:
            return
        try:
            given = grant or Grant()
            accelerator = given.accelerator.key if given.accelerator else ""
            has: dict[str, Any] = {"accelerator": accelerator, "gpus": given.gpus}
            names = {"user": self._name(happened, spawner), "server": spawner.name}
            self.record(Fact(happened, time.time(), **names, **{**has, **what}))
        except Exception:  # a record is no reason for a server not to start
            log.exception("Can't note that a server was %s", happened)

    def _name(self, happened: Happened, spawner: Any) -> str:
        """Return the name that an owner had when the server started; users may be renamed."""
        server, name = (spawner.user.id, spawner.name), str(spawner.user.name)
        match happened:
            case Happened.GRANTED:
                self._names[server] = name
            case Happened.STARTED:  # a restarted hub knows no other name
                self._names.setdefault(server, name)
            case Happened.ENDED:
                return self._names.pop(server, name)
        return self._names.get(server, name)

    async def _announce(self) -> None:
        while not await self.view.first_list(math.inf):  # it may fail, and be live later
            await self.view.changed(math.inf)
        _ = self.offers

    async def _learn(self, classes: "RuntimeClasses") -> None:
        """Learn what discovery needs besides nodes; also of a view that never becomes live."""
        while not self.view.state.nodes:
            await self.view.changed(math.inf)
        await classes.learn()
        self._discovered_at = -1

    async def first_list(self, timeout: float) -> bool:  # noqa: ASYNC109 - a gate's patience
        """As `ClusterView.first_list`, and wait until what is discovered is complete.

        Without its RuntimeClass, a server would start well, but see no GPU.
        """
        ends = time.monotonic() + timeout
        is_live, classes = await self.view.first_list(timeout), self._runtime_classes
        if classes is not None and not classes.is_settled:
            from gpuspawner.offers import discovery

            if discovery.may_need_class(self.view.state):
                await classes.settled(ends - time.monotonic())
        return is_live

    async def _close_at_the_end(self) -> None:
        """Close the connections when the hub ends, which cancels all tasks."""
        try:
            await asyncio.Event().wait()
        finally:
            await self.client.close()
            await self.view.events.close()
            if self.accounts is not None:
                await self.accounts.following.stop()

    @property
    def is_ending(self) -> bool:
        """Whether the hub ends: it cancels all its tasks in one tick (``shutdown_cancel_tasks``).

        A start that is cancelled while it doesn't is one that somebody has stopped, or is too late.
        """
        closing = self._closing
        return closing is not None and (closing.done() or closing.cancelling() > 0)

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
        if self._discovered_at != self.view.state.nodes_version:
            self._discover()
        return self._discovered

    def _servers(self) -> Mapping[Key, ServerPod]:
        """Return the pods of servers, if they are watched."""
        return self.accounts.ledger.pods if self.accounts is not None else {}

    def _discover(self) -> None:
        from gpuspawner.offers import discovery  # hubs with accelerators don't load it

        self._discovered_at = self.view.state.nodes_version
        classes = self._runtime_classes
        found = discovery.discover(self.view.state, classes.names if classes else ())
        self._discovered = self._configured.with_accelerators(found)
        self._had_choices = self._had_choices or bool(found)
        note = discovery.note(found)
        if self._is_quiet or note == self._last_note:
            return
        if isinstance(self.view.health(), Live):
            self._last_note = note
            log.info("%s", note)

    @property
    def display_names(self) -> dict[str, str]:
        """The names of accelerators and images, by key."""
        offers = self.offers
        images = {key: it.display_name for key, it in offers.images.items()}
        return images | {key: it.display_name for key, it in offers.accelerators.items()}

    @property
    def pod_rules(self) -> PodRules:
        """The rules for every pod, with what is on offer now."""
        accelerators = tuple(self.offers.accelerators.values())
        avoided = accelerators if self._keep_off else ()
        return replace(self._rules, accelerators=accelerators, cpu_avoids=avoided)


_runtime: Runtime | None = None


def current(settings: Settings) -> Runtime:
    """Return this process's runtime, for a spawner; `configure` has made it, or should have.

    Raises:
        OfferError, RuntimeError: As `configured`.
    """
    if _runtime is not None:
        return _runtime
    made = configured(settings)
    log.warning(
        "gpuspawner.configure(c) wasn't called, so the hub hasn't checked its configuration, "
        "serves no script for the form, and reads the cluster only from now on. "
        "Add this line to jupyterhub_config.py: import gpuspawner; gpuspawner.configure(c)"
    )
    return made


def configured(settings: Settings) -> Runtime:
    """Return this process's runtime; the first call makes it from *settings* and starts the view.

    Raises:
        OfferError: The offers aren't usable.
        RuntimeError: No event loop is running.
    """
    if _runtime is not None:
        return _runtime
    made = Runtime(AsSet(settings))
    _log_through_the_hub(settings.log)
    made.start()
    use(made)
    return made


def known(settings: Settings) -> Runtime | None:  # noqa: ARG001, as `current`
    """Return this process's runtime; None if nothing has made one, as for another's spawner."""
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
