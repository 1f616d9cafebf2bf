"""Logs once, in one block, what the hub has found when it starts, and tries pods like servers'.

The block needs the first list of the cluster, which may take long or never come. It never keeps the
hub waiting.
"""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from gpuspawner.cluster.health import Live
from gpuspawner.cluster.health_log import explain_health
from gpuspawner.cluster.kinds import SCALING_KINDS
from gpuspawner.cluster.schedulers import Judgement
from gpuspawner.compat import hub_limits, kubespawner, pods, sample_pod
from gpuspawner.kube.pods import Pod
from gpuspawner.messages.administrators import (
    BY_FUNCTION,
    GPUS_FOR_ALL,
    Finding,
    explain_declared_pool,
    explain_other_pools,
    explain_scheduler,
    explain_seen_pools,
    explain_stock,
    find_conflict,
    find_missing_rights,
    find_unknown_schedulers,
)
from gpuspawner.offers import inventory, manifest
from gpuspawner.offers.grant import Grant, grant_for
from gpuspawner.offers.user_options import GPURequest
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.runtime import DRY_RUN_PATIENCE, Runtime
from gpuspawner.scaling.pools import NONE
from gpuspawner.scaling.unseen_autoscalers import autoscaler_kinds
from gpuspawner.start.pod_builder import requested
from gpuspawner.traits.settings import Settings, known_schedulers

log = logging.getLogger(__name__)

# Seconds until the block says that the cluster isn't read yet: as long as a start waits for it.
PATIENCE = 30.0

_EVERYWHERE = (
    "node_selector", "node_affinity_required", "extra_resource_limits", "extra_resource_guarantees",
)  # fmt: skip
"""KubeSpawner's traits that say for all servers which nodes and GPUs they need."""

ReportLine = str | Finding
"""A line of the block: what is so, or what an administrator may want to change."""


class HubSettings(Settings, hub_limits.StartLimits, Protocol):
    """KubeSpawner's and JupyterHub's traits of a spawner that the block reads."""

    preflight: str
    node_selector: dict[str, str]
    node_affinity_required: Any


def begin(
    runtime: Runtime, settings: HubSettings, schedulers: Iterable[str], tornado_settings: object
) -> asyncio.Task[None]:
    """Warn about unknown schedulers now, and log the block when the cluster has been read.

    The task that is returned ends when everything is logged; nobody has to wait for it.

    Args:
        runtime: The hub's.
        settings: The traits as configured.
        schedulers: The names that servers may have, the hub's own first.
        tornado_settings: JupyterHub's trait, if it is set.

    Raises:
        RuntimeError: No event loop is running.
    """
    judged = known_schedulers(settings).judge(schedulers)
    for unknown in find_unknown_schedulers(judged):
        log.warning("%s %s", unknown.text, unknown.advice)
    configured = _configured(runtime, settings, judged, tornado_settings)
    return runtime.run(_tell(runtime, settings, judged, configured))


async def _tell(
    runtime: Runtime,
    settings: HubSettings,
    judged: Sequence[Judgement],
    configured: list[ReportLine],
) -> None:
    """Log the block as soon as the cluster is known, or in two parts if that takes long."""
    view = runtime.view
    if await view.first_list(PATIENCE):
        _log([*configured, *await _cluster(runtime, settings, judged)])
        return
    _log([*configured, f"cluster: {explain_health(view.health())}"])
    while not isinstance(view.health(), Live):
        await view.changed(PATIENCE)
    await view.first_list(PATIENCE)
    _log(await _cluster(runtime, settings, judged))


def _log(lines: Sequence[ReportLine]) -> None:
    """Log the block: as a warning if an administrator may want to change something."""
    found = [it for it in lines if isinstance(it, str)]
    wrong = [f"! {it.text} {it.advice}" for it in lines if isinstance(it, Finding)]
    level = logging.WARNING if wrong else logging.INFO
    log.log(level, "%s", "\n    ".join(["gpuspawner found:", *found, *wrong]))


def _configured(
    runtime: Runtime, settings: HubSettings, judged: Sequence[Judgement], tornado_settings: object
) -> list[ReportLine]:
    """Report what the configuration says without a look at the cluster."""
    limits = hub_limits.Limits.of(settings, tornado_settings, DRY_RUN_PATIENCE)
    return [
        f"preflight: {settings.preflight}",
        *_policies(runtime),
        *(f"scheduler: {explain_scheduler(it)}" for it in judged),
        *(find_conflict(it, limits) for it in hub_limits.conflicts(limits)),
    ]


def _policies(runtime: Runtime) -> tuple[str, ...]:
    if runtime.policies is None:
        return ()
    from gpuspawner.messages.policies import explain_policies  # a hub without policies lacks them

    return explain_policies(runtime.policies.given, runtime.policies.accounts.namespace)


async def _cluster(
    runtime: Runtime, settings: HubSettings, judged: Sequence[Judgement]
) -> list[ReportLine]:
    """Report what the cluster has, and try samples of servers on it. The view is live."""
    await asyncio.sleep(0)  # in this round, the hub discovers its accelerators
    named = sorted(await try_all(runtime, settings))
    by_admission = [it for it in known_schedulers(settings).judge(named) if it not in judged]
    state = runtime.view.state
    everywhere = {name: getattr(settings, name) for name in _EVERYWHERE}
    selections = (
        inventory.of_profiles(settings.profile_list, everywhere)
        if settings.profile_list
        else inventory.of_accelerators(runtime.offers.accelerators.values(), everywhere)
    )
    stocks = []
    for stock in inventory.take_stock(state, selections):
        stocks.append(explain_stock(stock))
        await asyncio.sleep(0)  # a hub may have a hundred choices with GPUs
    with_gpus = inventory.nodes_with_gpus(state, selections)
    await asyncio.sleep(0)
    return [
        *(f"scheduler set at admission: {explain_scheduler(it)}" for it in by_admission),
        f"nodes: {len(state.nodes)}, {with_gpus} with GPUs",
        *stocks,
        *([BY_FUNCTION] if callable(settings.profile_list) else []),
        *([GPUS_FOR_ALL] if runtime.gpus_for_all else []),
        *growth(runtime),
        *find_unknown_schedulers(by_admission),
        *find_missing_rights(await _forbidden(runtime, settings)),
    ]


async def _forbidden(runtime: Runtime, settings: HubSettings) -> list[str]:
    """Return the kinds that the hub may not read, of autoscalers only those that may be there."""
    missing = set(runtime.view.forbidden())
    left_out = {kind.plural for kind in SCALING_KINDS}
    if settings.autoscaling != NONE and not missing.isdisjoint(left_out):
        where = runtime.view.state.nodes.values(), settings.autoscaler_status
        left_out -= {kind.plural for kind in await autoscaler_kinds(runtime.client, *where)}
    return [it for it in runtime.view.forbidden() if it not in left_out]


def growth(runtime: Runtime) -> tuple[str, ...]:
    """Say which pools can grow, and how the hub knows."""
    offered = runtime.offers.accelerators.values()
    return (
        *(explain_declared_pool(it.key, it.scale_up.max_nodes) for it in offered if it.scale_up),
        *(explain_seen_pools(*each) for each in runtime.pools.names),
        *explain_other_pools(runtime.pools.others()),
    )


# Pods like those of servers, which the hub tries when it starts; nobody starts them.
#
# From them it learns whether admission changes such pods; see
# `gpuspawner.preflight.learned_admission`. So it can refuse a server for lack of GPUs at once, from
# its first minute on.


_PERSON = "gpuspawner"
"""Who makes the dry runs: they take turns among themselves, and none from users."""


async def try_all(runtime: Runtime, settings: Any) -> frozenset[str]:
    """Try one pod of each accelerator, or of each profile. Never raises.

    Return the schedulers that the pods name after admission.

    A hub that gives each user a namespace has none yet to try them in.
    """
    if settings.enable_user_namespaces:
        return frozenset()
    admission, learned = runtime.dry_runs.for_start(_PERSON), runtime.preflight.learned
    try:
        tried: list[asyncio.Task[Pod | None]] = []
        async with asyncio.TaskGroup() as trying:
            for sample in samples(runtime, settings):
                tried.append(trying.create_task(learned.try_sample(sample, admission)))
                await asyncio.sleep(0)  # making and judging one takes a millisecond or two
        return frozenset(pod.spec.scheduler_name for it in tried if (pod := it.result()))
    except Exception as error:  # noqa: BLE001, the first refusals just make their own dry runs
        log.info("No sample of a server's pod was tried: %r", error)
        return frozenset()


def samples(runtime: Runtime, settings: Any) -> Iterator[Proposal]:
    """Yield the pods; none of what can't be made without a user."""
    offers, rules = runtime.offers, runtime.pod_rules
    for accelerator in offers.accelerators.values():
        least = min(offers.choices(accelerator).counts)
        grant = grant_for(GPURequest(accelerator=accelerator.key, gpus=least), offers)
        if isinstance(grant, Grant):
            pod = manifest.apply(_pod(settings, {}), manifest.without_volumes(grant), rules)
            yield Proposal(settings.namespace, _PERSON, pod, grant)
    for slug, override in _overrides(settings.profile_list):
        try:
            pod = _pod(settings, override)
        except Exception as error:  # noqa: BLE001, it must not stop the others
            log.info("No sample of the profile %s was tried: %r", slug, error)
            continue
        sample = Proposal(settings.namespace, _PERSON, pod, Grant())
        grant = requested(sample.decoded, runtime.view.state.rules, slug)
        yield replace(sample, grant=grant)


def _pod(settings: Any, override: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = pods.plain(sample_pod.make(settings, override))
    return made


def _overrides(given: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each profile's slug, and what it changes."""
    profiles = kubespawner.as_list(given)
    if callable(profiles):
        return
    for profile in kubespawner.complete_profiles(None, profiles):
        yield profile["slug"], profile.get("kubespawner_override") or {}
