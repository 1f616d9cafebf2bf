"""GPUSpawner: a KubeSpawner whose gates ask the cluster before a pod exists.

It overrides what the hub and KubeSpawner call and asks the rooms below; it has no rule of its own.
The gates are methods, never the traits ``apply_user_options``, ``options_from_form`` and
``options_form``, which are the administrator's.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable
from dataclasses import replace
from functools import partial
from typing import Any

from jupyterhub.utils import maybe_future
from kubespawner import KubeSpawner
from traitlets import Any as AnyTrait
from traitlets import Bunch, default, validate

from gpuspawner import config, form, gates, hub, messages, options, pods, runtime, sent
from gpuspawner.admission.rejection import Of, Rejection
from gpuspawner.asking import Asking
from gpuspawner.manifest import ManifestError
from gpuspawner.outages import StandsOutages
from gpuspawner.pods import Plain
from gpuspawner.policy import Grant, Person
from gpuspawner.preflight.ask import Ask
from gpuspawner.preflight.decision import Decision, Start
from gpuspawner.preflight.preflight import START_PATIENCE
from gpuspawner.preflight.seats import Seats
from gpuspawner.preflight.strangers import Key
from gpuspawner.profiles import ChoosesProfiles, Listing, Profiles, listing
from gpuspawner.saving import SavesOptions
from gpuspawner.seating import KeepsSeat
from gpuspawner.underway import Asked, Underway
from gpuspawner.web import ShowsForm


class GPUSpawner(
    ShowsForm,
    ChoosesProfiles,
    KeepsSeat,
    SavesOptions,
    StandsOutages,
    KubeSpawner,  # type: ignore[misc]
):
    """KubeSpawner with a choice of GPUs, which starts a pod only where the cluster can hold it."""

    accelerators = config.accelerators
    default_accelerator = config.default_accelerator
    images = config.images
    memory_choices = config.memory_choices
    cpu_choices = config.cpu_choices
    unlisted_image = config.unlisted_image
    unlisted_memory = config.unlisted_memory
    memory_requested = config.memory_requested
    cpu_requested = config.cpu_requested
    cpu_environment = config.cpu_environment
    keep_cpu_servers_off_accelerators = config.keep_cpu_servers_off_accelerators
    preflight = config.preflight
    language = config.language
    scheduler_version = config.scheduler_version
    default_filter_schedulers = config.default_filter_schedulers

    # JupyterHub 5 stores any JSON that a REST body holds and hands it over again at every later
    # page; what is no object is refused at the gate and must not break the making of a spawner.
    user_options = AnyTrait(help="What was asked for: hostile until gpuspawner.options has read it")

    @validate("user_options")
    def _keep_what_can_be_read(self, proposal: Bunch) -> object:
        """JupyterHub writes these options into its answers about servers."""
        return proposal.value if sent.is_within_bounds(proposal.value) else sent.TOO_MUCH

    _underway: Underway | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._passed = asyncio.Event()  # the second gate
        self._runtime = runtime.current(self)

    @default("user_options")
    def _no_options(self) -> dict[str, object]:
        return {}

    @default("apply_user_options")
    def _nothing_to_apply(self) -> Any:
        return gates.apply_nothing

    # The form

    @default("options_form")
    def _options_form_default(self) -> Any:
        return GPUSpawner.profile_form if self.profile_list else GPUSpawner.accelerator_form

    # Gate 1: form and query

    @default("options_from_form")
    def _options_from_form_default(self) -> Any:
        return super()._options_from_form_default() if self.profile_list else options.from_form

    def run_options_from_form(self, form_data: Plain) -> Any:
        """Read the form, and refuse on it what could not start."""
        hub.speak(self)
        fields = form.pressed(form_data)
        hub.keep_draft(options.from_form(fields))
        return self._examine(super().run_options_from_form(fields))

    def options_from_query(self, query_data: Plain) -> Any:
        """Read ``/hub/spawn?opt-gpus=2``, and refuse on the form what could not start."""
        hub.speak(self)
        query = sent.option_names(query_data)
        hub.keep_draft(options.from_form(query))
        return self._examine(super().options_from_query(query))

    async def _examine(self, sent: object) -> object:
        """Refuse options that could not start, or return them as the hub is to store them.

        Nothing is kept here: JupyterHub 6.1 may start another spawner object than this one.
        """
        raw = await sent if inspect.isawaitable(sent) else sent
        await self._runtime.view.first_list(gates.FORM_PATIENCE)
        profiles = await self.profiles()
        hub.refuse_twice(self)
        asked = await self._asked(raw, profiles)
        hub.refuse_twice(self)
        if self.preflight == config.ENFORCE:
            await gates.decide(self, asked.ask, self._examine_alone, asked.tell)
        hub.pass_alone(self)
        return asked.granted

    async def _examine_alone(self, ask: Ask) -> Decision:
        """Judge, unless another request has come first while admission was asked."""
        decision = await self._runtime.preflight.examine(ask)
        hub.refuse_twice(self)
        return decision

    # Gate 2: every start

    def run_pre_spawn_hook(self) -> Any:
        """Ask for every start, before the administrator's own hook, and take the seat."""
        hub.speak(self)
        admitted = hub.at_once(partial(self._admit, listing(self)))
        if admitted is None:
            return super().run_pre_spawn_hook()
        return self._run_hook_after(admitted)

    async def _run_hook_after(self, admitted: Awaitable[None]) -> None:
        await admitted
        await maybe_future(super().run_pre_spawn_hook())

    async def _admit(self, listed: Listing) -> None:
        """Take the seat in the tick of the verdict; waits only for what is not known yet."""
        if self._runtime.discovers and not self.profile_list:
            await self._runtime.view.first_list(START_PATIENCE)
        if not self.connect():
            raise gates.unreachable(self)
        self.keep_unloaded()
        profiles = await self.profiles(listed)
        begin = self._runtime.preflight.begin
        with self.taking_back():
            asked = await self._asked(self._requested(), profiles)
            decision = await gates.decide(self, asked.ask, begin, asked.tell)
        self._underway = Underway(asked, decision)
        if isinstance(decision, Start):
            for unknown in messages.explain_unknown(decision):
                self.log.info("Starting %s unchecked: %s", hub.log_name(self), unknown)
        self.user_options = asked.granted
        self._passed.set()

    def _requested(self) -> object:
        """The options of this start. Said nothing: those stored, as far as still on offer."""
        self.gone = ()
        requested = gates.requested(self)
        if requested is not None:
            return requested
        if self.profile_list:
            return self.stored_options()
        saved, self.gone = self.saved(self._runtime.offers)
        return saved

    # Gate 3: the pod that is really sent

    async def get_pod_manifest(self) -> Any:
        """KubeSpawner's pod, with what was granted to this start."""
        pod = await super().get_pod_manifest()
        asked = self._underway.asked if self._underway else None
        if asked is None or asked.asking is None:
            return pod
        asking = replace(asked.asking, stock=pods.plain(pod))
        return pods.model(self._pod(asking, asked.ask.grant))

    async def _make_create_pod_request(self, pod: Any, request_timeout: float) -> Any:
        with self.taking_back():
            created = await self._create_judged(pod, request_timeout)
        if created and self._underway is not None:
            self.grant_options(self._underway.asked.granted)
        return created

    async def _create_judged(self, pod: Any, request_timeout: float) -> Any:
        underway = self._underway
        nothing = Asked(Ask(self.namespace, self.pod_name, {}, Grant()), {})
        asked = underway.asked if underway else nothing
        asked = replace(asked, ask=replace(asked.ask, pod=pods.plain(pod)))
        confirm = self._runtime.preflight.confirm
        decision = await gates.decide(self, asked.ask, confirm, asked.tell)
        for overruled in messages.explain_overruled(decision):
            self.log.warning("Starting %s all the same: %s", hub.log_name(self), overruled)
        if underway is not None:
            self._underway = Underway(asked, decision)
        async with gates.refusing(self, asked.ask.grant, Of.POD, asked.tell):
            return await super()._make_create_pod_request(pod, request_timeout)

    async def _make_create_pvc_request(self, pvc: Any, request_timeout: float) -> Any:
        grant = self._underway.asked.ask.grant if self._underway else Grant()
        async with gates.refusing(self, grant, Of.HOME):
            return await super()._make_create_pvc_request(pvc, request_timeout)

    async def dry_run(self, namespace: str, pod: Plain) -> Plain | Rejection | None:
        """What admission would make of a pod, or why it would not; None where nobody can tell."""
        await asyncio.sleep(0)  # nothing is sent by an attempt of `hub.at_once`
        if not self.connect():
            return None
        return await self._runtime.dry_runs.for_start(self.user.name, namespace, pod)

    # What the gates share

    async def _asked(self, raw: object, profiles: Profiles | None) -> Asked:
        """Read options, as they came, for what they ask of the cluster."""
        gates.check_bounds(self, raw)
        if profiles is not None:
            chosen = profiles.choose(raw)
            ask = await profiles.ask(chosen)
            return Asked(ask, dict(chosen.options), tell=profiles.teller(chosen))
        granted, grant = gates.read(self, raw, self._person(), self._runtime.offers)
        asking = await self._asking()
        return Asked(self._ask(asking, grant), granted, asking)

    def _person(self) -> Person:
        return Person(self.user.name, frozenset(group.name for group in self.user.groups))

    async def _asking(self) -> Asking:
        offers = self._runtime.offers
        rules = self._runtime.pod_rules(offers)
        return Asking(self._person(), offers, rules, await self._stock_pod())

    async def _stock_pod(self) -> Plain | None:
        """KubeSpawner's pod; None where it needs what the administrator's hook has yet to set."""
        making = super().get_pod_manifest()
        try:
            pod = await making
        except Exception as error:  # noqa: BLE001, the third gate makes the pod again
            self.log.info("The pod of %s cannot be made yet: %r", hub.log_name(self), error)
            return None
        return pods.plain(pod)

    def _ask(self, asking: Asking, grant: Grant) -> Ask:
        return Ask(
            namespace=self.namespace,
            name=self.pod_name,
            pod=self._pod(asking, grant),
            grant=grant,
            new_claims=self.new_claims(),
            offers=asking.offers,
            variant=asking.variant,
        )

    def new_claims(self) -> tuple[Plain, ...]:
        """The home that KubeSpawner makes before the pod, if there is none yet."""
        return (pods.plain(self.get_pvc_manifest()),) if self.storage_pvc_ensure else ()

    def _pod(self, asking: Asking, grant: Grant) -> Plain:
        try:
            return asking.pod(grant)
        except ManifestError as error:
            raise gates.misconfigured(self, str(error)) from error

    # The start and its end

    def start(self) -> Any:
        """Start as KubeSpawner does, with patience for a node that has yet to come."""
        self._passed.set()  # the hub asks the second gate first; others may start without it
        configured = self.start_timeout
        patience = self._underway.seconds_for_a_node if self._underway else 0
        self.set_trait("start_timeout", configured + patience)
        started = super().start()

        def end(_: object) -> None:
            self.set_trait("start_timeout", configured)
            self.forget_unloaded(started)

        started.add_done_callback(end)
        return started

    def seats(self) -> Seats:
        """All seats of this hub."""
        return self._runtime.preflight.seats

    def seat_key(self) -> Key:
        """What the seat of this start is known by."""
        return self._underway.asked.ask.key if self._underway else (self.namespace, self.pod_name)

    async def until_taken(self) -> None:
        """Wait until the pod's place has gone to somebody else, and raise the refusal.

        Only a promise can be lost.
        """
        if self._underway is not None and self._underway.is_promised:
            asked, taken = self._underway.asked, self._runtime.preflight.until_taken
            await gates.decide(self, asked.ask, taken, asked.tell)

    async def progress(self) -> AsyncIterator[dict[str, Any]]:
        """KubeSpawner's progress, after what is worth knowing about this start."""
        await self._passed.wait()
        hub.speak(self)
        if self._underway is not None:
            for message in self._underway.news(self.gone):
                yield {"progress": 5, "message": message.text, "html_message": message.html}
        async for event in super().progress():
            yield event

    def clear_state(self) -> None:
        """Forget the start that has ended; the hub calls this after every end, good or bad."""
        super().clear_state()
        if self._underway is not None:
            self.seats().release(self.seat_key())
        self._underway = None
        self._passed.clear()

    def _apply_overrides(self, spawner_override: Plain) -> None:
        """Apply what a profile or a group sets, which can be no offer: those are the hub's."""
        offers = sorted(set(config.OFFERS).intersection(spawner_override))
        if offers:
            why = f"GPUSpawner.{offers[0]} can only be set for the whole hub"
            raise gates.misconfigured(self, why)
        super()._apply_overrides(spawner_override)
