"""The source of servers if the administrator offers accelerators."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import msgspec

from gpuspawner import messages
from gpuspawner.cluster.health import Live
from gpuspawner.compat import pods
from gpuspawner.compat.kubespawner import MAKING
from gpuspawner.compat.likeness import likeness
from gpuspawner.form.addresses import live
from gpuspawner.form.render import render
from gpuspawner.form.view_builder import above_the_form
from gpuspawner.kube.objects import Manifest
from gpuspawner.messages import Message, OnForm
from gpuspawner.offers import manifest, options
from gpuspawner.offers.grant import Grant, grant_for
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.options import FieldError
from gpuspawner.offers.user_options import GPURequest, fall_back, from_form, parse, user_options
from gpuspawner.preflight.availability import Availability
from gpuspawner.preflight.decision import Refuse
from gpuspawner.preflight.dry_runs import Admission
from gpuspawner.preflight.learned_hooks import Later, kind_of
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.runtime import Runtime
from gpuspawner.start import hooks, request_options, stored_options, submitted_form
from gpuspawner.start.host import Host, log_name, within_start_timeout
from gpuspawner.start.kueue_queue import in_queue, queue_for
from gpuspawner.start.pod_builder import PodBuilder, home_of
from gpuspawner.start.policing import Entitlement, Policing
from gpuspawner.start.refusal import invalid, misconfigured, not_offered
from gpuspawner.start.source import Choice, Options, ServerSource, Stored

_OF_GPUS = (options.ACCELERATOR, options.GPUS.name)
"""Our options on a hub without offers."""


class AllowedVariants(msgspec.Struct, frozen=True):
    """As `Variants`: what the policies leave to a server's owner now, beside the other servers.

    The offers alone don't tell: a server without a GPU stays among them, whatever is left.
    """

    builder: PodBuilder
    entitlement: Entitlement
    proposal: Proposal

    @property
    def offers(self) -> Offers:
        """As `Variants.offers`."""
        return self.entitlement.offers_left

    def variant(self, request: GPURequest) -> tuple[Grant, Manifest] | None:
        """As `Variants.variant`."""
        grant = grant_for(request, self.offers)
        if grant is None:
            return None
        try:
            pod = self.builder.later.expected(kind_of(grant), self.builder.pod(grant))
        except manifest.ManifestError:
            return None
        other = replace(self.proposal, grant=grant, pod=pod)
        return None if self.entitlement.denied(other, "") else (grant, pod)


@dataclass(frozen=True, kw_only=True)
class AcceleratorChoice(Choice):
    """Options that are on offer."""

    builder: PodBuilder = field(repr=False)
    preflight: Preflight = field(repr=False)
    policing: Policing = field(repr=False)

    def complete(self, pod: Manifest) -> Manifest:
        """As `Choice.complete`."""
        return _made(lambda: manifest.apply(pod, self.proposal.grant, self.builder.rules))

    def sending(self, pod: Manifest, **its: Any) -> Self:
        """As `Choice.sending`; the administrator's own code may have given it a GPU."""
        is_granted = self.proposal.grant.accelerator is not None
        seeing = pod if is_granted else manifest.showing_gpus(pod, self.builder.rules)
        return super().sending(seeing, **its)

    async def explain(self, refusal: Refuse, admission: Admission) -> tuple[Message, OnForm]:
        """As `Choice.explain`."""
        entitlement = await self.policing.entitlement(self.proposal.key)
        allowed = AllowedVariants(self.builder, entitlement, self.proposal)
        refusal = await self.preflight.with_alternatives(refusal, self.proposal, allowed, admission)
        return await super().explain(refusal, admission)


class Accelerators(ServerSource):
    """The accelerators on offer to one server's owner."""

    def __init__(self, spawner: Host, runtime: Runtime, policing: Policing) -> None:
        self.spawner = spawner
        self.runtime = runtime
        self.policing = policing

    def of(self, server: str) -> "Accelerators":
        """Return the same for another server of the owner, which needn't exist yet."""
        return Accelerators(self.spawner, self.runtime, self.policing.of(server))

    async def ready(self, patience: float) -> None:
        """As `ServerSource.ready`."""
        if self.runtime.discovers:
            await self.runtime.first_list(patience)

    @property
    def reads_form(self) -> Callable[..., Any]:
        """As `ServerSource.reads_form`."""
        return from_form

    async def requested(self) -> Stored:
        """As `ServerSource.requested`."""
        if stored_options.were_replaced():
            # The hub has read them, and an administrator's code may have changed them. A handler of
            # the administrator's may have passed others than its request has.
            return Stored(self.spawner.user_options)
        sent = request_options.requested_options(self.spawner)
        return await self.stored() if sent is None else Stored(sent)

    async def stored(self) -> Stored:
        """As `ServerSource.stored`."""
        return self._stored((await self.policing.entitlement()).offers)

    def _stored(self, offers: Offers) -> Stored:
        ours, theirs = self.split(stored_options.stored(self.spawner))
        kept, gone = fall_back(ours, offers)
        return Stored({**self._ours(kept, ours), **theirs}, gone)

    async def resolve(self, raw: object) -> AcceleratorChoice:
        """As `ServerSource.resolve`."""
        builder = await self.builder()
        ours, theirs = self.split(raw)
        request, offers = self.parse(ours, builder.offers)
        if not isinstance(request, GPURequest):
            raise invalid(request)
        grant = grant_for(request, offers)
        if grant is None:
            raise not_offered(request)
        proposal = self.propose(grant, _made(lambda: builder.pod(grant)), builder.later)
        granted = {**self._ours(request, ours), **theirs}
        return AcceleratorChoice(
            proposal,
            granted,
            builder=builder,
            preflight=self.runtime.preflight,
            policing=self.policing,
        )

    def parse(
        self, ours: object, offers: Offers
    ) -> tuple[GPURequest | tuple[FieldError, ...], Offers]:
        """Read our options; return the request, or all errors, and the offers that it is among.

        *offers* are the owner's. If policies withhold from the owner what the hub offers, the
        request is read too: then the policies deny it, in their own words.
        """
        request = parse(ours, offers)
        if isinstance(request, GPURequest):
            return request, offers
        others = parse(ours, self.runtime.offers)
        known = isinstance(others, GPURequest)
        return (others, self.runtime.offers) if known else (request, offers)

    def split(self, raw: object) -> tuple[object, Options]:
        """Split options into ours and those that an administrator's own hooks read."""
        if not raw or not isinstance(raw, Mapping):
            return raw, {}
        offers_nothing = self.runtime.offers_nothing  # but what it has discovered
        if not offers_nothing and not hooks.reads_options(self.spawner):
            return raw, {}
        ours = _OF_GPUS if offers_nothing else options.NAMES
        theirs = {name: value for name, value in raw.items() if name not in ours}
        return {name: value for name, value in raw.items() if name not in theirs}, theirs

    def _ours(self, request: GPURequest, sent: object) -> Options:
        """Return a request as options; without offers, only what was *sent*, or names its GPUs.

        Code that nobody can look into may ask which options there are.
        """
        chosen: Options = {**user_options(request)}
        if not self.runtime.offers_nothing:
            return chosen
        its = sent if isinstance(sent, Mapping) else {}
        return {n: chosen[n] for n in _OF_GPUS if request.accelerator or n in its}

    async def builder(self) -> PodBuilder:
        """Return the builder of the owner's pods, with what is on offer to the owner."""
        return self._builder(await self.policing.entitlement(), await self.stock_pod())

    def _builder(self, entitlement: Entitlement, stock: Manifest | None) -> PodBuilder:
        return PodBuilder(entitlement.offers, self.runtime.pod_rules, stock, self.later)

    @property
    def later(self) -> Later:
        """As `ServerSource.later`."""
        placements = self.runtime.preflight.learned.placements
        return hooks.later(self.spawner, placements, self.policing.server, MAKING)

    def propose(self, grant: Grant, pod: Manifest, later: Later) -> Proposal:
        """Propose a pod for this server, as *later* expects it."""
        started = hooks.as_started(self.spawner)
        place, owner = (started.namespace, started.pod_name), started.user.id
        made = Proposal(*place, pod, grant, home_of(started), owner=owner)
        return made.expecting(later, grant)

    def survey(
        self, entitlement: Entitlement, stock: Manifest | None
    ) -> tuple[PodBuilder, tuple[Availability, ...]]:
        """Return the builder and each accelerator's availability to this server's owner.

        *stock* is what `stock_pod` has returned; `what_decides` of it is enough.
        """
        builder = self._builder(entitlement, stock)
        return builder, self._to_owner(self._surveyed(builder), entitlement)

    def _surveyed(self, builder: PodBuilder) -> tuple[Availability, ...]:
        health = self.runtime.view.health()
        return self.runtime.surveys.survey(
            health, builder.offers, builder.stock, builder.rules, builder.later
        )

    async def _survey_for_form(self, entitlement: Entitlement) -> tuple[Availability, ...]:
        """Return each accelerator's availability, without making a pod if a like one is known."""
        started, surveys = hooks.as_started(self.spawner), self.runtime.surveys
        alike = likeness(started)
        if alike is None or not isinstance(self.runtime.view.health(), Live):
            return self._surveyed(self._builder(entitlement, await self.stock_pod()))
        others = entitlement.offers, queue_for(started, self.runtime.view.queues), self.later
        alone, shared = (alike.alone, *others), (alike.but_for_claims, *others)
        if (found := surveys.kept.find(surveys.version, alone, shared)) is not None:
            return found
        builder = self._builder(entitlement, await self.stock_pod())
        found = self._surveyed(builder)
        if builder.stock is None or likeness(hooks.as_started(self.spawner)) != alike:
            return found  # it can't be made yet, or somebody has changed the settings meanwhile
        pod = self.propose(Grant(), builder.stock, builder.later).decoded
        is_alone = pod is None or self.runtime.preflight.verdicts.depends_on_labels(pod)
        return surveys.kept.keep(surveys.version, alone if is_alone else shared, found)

    def _to_owner(
        self, rows: tuple[Availability, ...], entitlement: Entitlement
    ) -> tuple[Availability, ...]:
        waiting = self.runtime.preflight.line.waiting()
        if not waiting and not entitlement.is_limited:
            return rows

        def to_owner(row: Availability) -> Availability:
            found = entitlement.limited(row)
            in_line = waiting[row.accelerator.key] if row.accelerator else 0
            return msgspec.structs.replace(found, in_line=in_line) if in_line else found

        return tuple(map(to_owner, rows))

    async def form(self, before: Sequence[str] = ()) -> str:
        """As `ServerSource.form`, with the choices of this request, or else of the last start."""
        entitlement = await self.policing.entitlement()
        rows = self._to_owner(await self._survey_for_form(entitlement), entitlement)
        draft = submitted_form.current() or self._untouched(entitlement)
        served = live(self.spawner)
        its = entitlement.lines, entitlement.servers, entitlement.withheld
        left = above_the_form(self.spawner, before, *its)
        shown = entitlement.offers, rows, draft.options, draft.refused, served, left
        return render(*shown, no_gpus=entitlement.no_gpus)

    def _untouched(self, entitlement: Entitlement) -> submitted_form.Draft:
        gone = self._stored(entitlement.offers).gone
        # Without a live view, models that the hub discovers only look as if they were gone.
        known = isinstance(self.runtime.view.health(), Live)
        told = OnForm(messages.gone_from_form(gone), is_refusal=False) if gone and known else None
        return submitted_form.Draft(self.spawner.user_options, told)

    async def stock_pod(self) -> Manifest | None:
        """Return KubeSpawner's pod; None if it can't be made yet.

        It may need values that ``pre_spawn_hook`` sets later.
        """
        started = hooks.as_started(self.spawner)
        try:
            async with within_start_timeout(self.spawner):
                pod = await started.gpuspawner_stock.make_pod()
        except Exception as error:  # noqa: BLE001, the third gate makes the pod again
            name = log_name(self.spawner)
            self.spawner.log.info("Can't build the pod of %s yet: %r", name, error)
            return None
        plain = pods.plain(pod)
        # The scheduler counts the other pods of the namespace, which KubeSpawner leaves out.
        metadata = {**(plain.get("metadata") or {}), "namespace": started.namespace}
        return in_queue(started, self.runtime.view.queues, {**plain, "metadata": metadata})


def _made(make: Callable[[], Manifest]) -> Manifest:
    try:
        return make()
    except manifest.ManifestError as error:
        raise misconfigured(str(error)) from error
