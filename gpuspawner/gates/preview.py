"""Decide what a start would get now, without logging it or keeping a reservation."""

from dataclasses import replace

from gpuspawner.gates import wait_option
from gpuspawner.gates.accelerators import Accelerators, AllowedVariants
from gpuspawner.kube.quoting import one_line
from gpuspawner.offers.grant import grant_for
from gpuspawner.offers.manifest import ManifestError
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.options import FieldError
from gpuspawner.offers.user_options import GPURequest
from gpuspawner.preflight.decision import Decision, Refuse, Start, UnknownRules
from gpuspawner.start.asking_preflight import answer
from gpuspawner.start.hooks import as_started
from gpuspawner.start.pod_builder import PodBuilder
from gpuspawner.start.refusal import Refusal, not_offered
from gpuspawner.start.source import Choice
from gpuspawner.traits import OFF
from gpuspawner.traits.trait_types import setting

Found = Decision | Refusal | tuple[FieldError, ...]
"""A `Refusal` is what a policy denies, or isn't on offer."""


async def preview(
    accelerators: Accelerators, raw: object, server_name: str
) -> tuple[Found, Offers]:
    """Return the decision that a start with these options would get now, and the offers.

    The server needn't exist yet; then the spawner is that of the owner's default server.

    Raises:
        TooManyDryRunsError: There are too many dry runs right now.
    """
    asked = accelerators.of(server_name)
    builder = await asked.builder()
    return await _found(asked, builder, raw), builder.offers


async def _found(accelerators: Accelerators, builder: PodBuilder, raw: object) -> Found:
    spawner, runtime = as_started(accelerators.spawner), accelerators.runtime
    try:
        options, _wish = wait_option.split(raw, runtime.line)
    except Refusal as refusal:
        return refusal.on_form.errors
    ours, _ = accelerators.split(options)
    request, offers = accelerators.parse(ours, builder.offers)
    if not isinstance(request, GPURequest):
        return request
    grant = grant_for(request, offers)
    if grant is None:
        return not_offered(request)
    try:
        proposal = accelerators.propose(grant, builder.pod(grant), builder.later)
    except ManifestError:  # the grant contradicts the configuration
        return not_offered(request)
    _, name = accelerators.policing.key  # this spawner's pod may be another server's
    proposal = replace(proposal, name=name)
    choice = Choice(proposal)
    try:
        await accelerators.policing.examine(choice)
    except Refusal as refusal:
        return refusal
    if setting(spawner, "preflight") == OFF:
        return Start(grant, (UnknownRules(("GPUSpawner.preflight is off",)),))
    admission = runtime.dry_runs.for_form(spawner.user.name)
    decision = await answer(spawner, choice, runtime.preflight.foretell, admission)
    if not isinstance(decision, Refuse):
        return decision
    try:
        entitlement = await accelerators.policing.entitlement()
        allowed = AllowedVariants(builder, entitlement, proposal)
        return await runtime.preflight.with_alternatives(decision, proposal, allowed, admission)
    except Exception:
        # The refusal is right even without alternatives.
        spawner.log.exception("Finding alternatives for %s failed", one_line(proposal.name))
        return decision
