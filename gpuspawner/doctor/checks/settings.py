"""Settings of the hub that keep gpuspawner from its work, or that contradict each other."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jupyterhub.utils import maybe_future

from gpuspawner import configuration
from gpuspawner.compat import hub_limits
from gpuspawner.compat.spawner_class import SpawnerClassError, imported
from gpuspawner.configuration import SAME_NAME, shared_names
from gpuspawner.doctor.checks.causes import Cause
from gpuspawner.doctor.hub import Hub
from gpuspawner.gates.what_if import NOBODY, Tried, UnusableError
from gpuspawner.kube.autoscaling import Disruption, NodePool
from gpuspawner.kube.objects import Manifest, mapping
from gpuspawner.kube.quoting import count, listing, quote
from gpuspawner.kube.servers import KARPENTER
from gpuspawner.messages.administrators import (
    Finding,
    Severity,
    error,
    find_conflict,
    fine,
    warning,
)
from gpuspawner.policies.owner import Owner
from gpuspawner.profiles import override_mistakes
from gpuspawner.runtime import DRY_RUN_PATIENCE
from gpuspawner.spawner import GPUSpawner
from gpuspawner.start.host import within_start_timeout
from gpuspawner.start.refusal import Refusal
from gpuspawner.traits import ENFORCE, OFF
from gpuspawner.use.gpu_use_config import read_use
from gpuspawner.use.prometheus import Prometheus, UseUnknownError

_LATELY = 300.0
"""How far the doctor looks back for the use of GPUs, in seconds."""


def check(hub: Hub) -> Iterator[Finding]:
    """Check the settings alone."""
    if not _is_ours(hub.config.JupyterHub.get("spawner_class")):
        yield error(
            "spawner-class",
            "The hub doesn't use GPUSpawner; the other findings say what it would do.",
            "Add `import gpuspawner` and `gpuspawner.configure(c)` to the end of the "
            "configuration file.",
        )
    preflight = hub.spawner.preflight
    if preflight != ENFORCE:
        does = "no server is checked" if preflight == OFF else "a server without room starts anyway"
        yield warning(
            "preflight",
            f"GPUSpawner.preflight is {preflight!r}, so {does}.",
            "Set it to 'enforce', or remove the line, when you trust the verdicts.",
        )


def check_disruption(hub: Hub, tried: Sequence[Tried]) -> Iterator[Finding]:
    """Check that Karpenter ends no servers to consolidate nodes."""
    pools = [
        it.metadata.name
        for it in hub.view.autoscalers.every(NodePool)
        if _ends_servers(it.spec.disruption)
    ]
    if pools and (whose := _disrupted(hub.spawner, tried)):
        yield warning(
            "consolidation",
            f"Karpenter may end {whose} on nodes of {listing(pools)} to consolidate nodes.",
            "Set GPUSpawner.do_not_disrupt = True, for all servers or in profiles, or the pools' "
            "consolidationPolicy: WhenEmpty.",
        )


def _disrupted(spawner: GPUSpawner, tried: Sequence[Tried]) -> str:
    """Say which servers have no annotation against it; "" if none that matters.

    Profiles may set it for themselves. If some do, those without GPUs may be meant to go.
    """
    if spawner.do_not_disrupt or KARPENTER in spawner.extra_annotations:
        return ""
    made = [(it.server.offer, it.proposal) for it in tried if it.proposal is not None]
    judged = [it for it in made if it[1].grant.accelerator] or made
    without = [offer for offer, proposal in judged if KARPENTER not in _annotations(proposal.pod)]
    if len(without) == len(judged):  # also if no server could be tried
        return "users' servers"
    return f"servers of {listing(dict.fromkeys(without))}" if without else ""


def _annotations(pod: Manifest) -> Mapping[str, object]:
    return mapping(mapping(pod.get("metadata")).get("annotations"))


def _ends_servers(rule: Disruption) -> bool:
    """Whether nodes that aren't empty may go: the least budget of Karpenter's counts."""
    reason = "Underutilized"
    never = any(
        it.nodes in ("0", "0%") and it.schedule is None and reason in (it.reasons or [reason])
        for it in rule.budgets or ()
    )
    is_on = rule.consolidation_policy != "WhenEmpty" and rule.consolidate_after != "Never"
    return is_on and not never


def check_names(hub: Hub) -> Iterator[Finding]:
    """Check that nothing of the administrator's sets a trait of the whole hub on a spawner."""
    for place, name in shared_names(hub.spawner, type(hub.spawner)):
        advice = "Rename it, if it is an attribute of your own."
        yield warning("same-name", f"{SAME_NAME.format(place, name)}.", advice)


def check_limits(hub: Hub) -> Iterator[Finding]:
    """Check whether time-outs and limits of JupyterHub and KubeSpawner defeat each other."""
    tornado_settings = hub.config.JupyterHub.get("tornado_settings")
    limits = hub_limits.Limits.of(hub.spawner, tornado_settings, DRY_RUN_PATIENCE)
    yield from (find_conflict(it, limits) for it in hub_limits.conflicts(limits))


async def check_use(hub: Hub) -> list[Finding]:
    """Check that the Prometheus of `gpu_use` answers, and says which pods have which GPUs."""
    rules = read_use(hub.spawner.gpu_use)
    if rules is None or not rules.prometheus:
        return []
    effect = "so nobody knows whether GPUs are used, and idle ones aren't given back"
    try:
        window = await Prometheus(rules.prometheus, rules.prometheus_labels).window(_LATELY)
    except UseUnknownError as failed:
        text = f"The hub can't read the use of GPUs, {effect}: {failed}."
        advice = "Correct gpu_use.prometheus, or let this pod reach it."
        return [warning("gpu-use", text, advice)]
    if not window.devices:
        text = f"Prometheus has no pod's GPU from DCGM exporter, {effect}, unless no pod has one."
        labels = ", and correct gpu_use.prometheus_labels" if rules.prometheus_labels else ""
        return [warning("gpu-use", text, f"Let Prometheus scrape DCGM exporter{labels}.")]
    pods = count(len(window.devices), "pod")
    return [fine("gpu-use", f"Prometheus knows the GPUs of {pods}.")]


async def check_slips(hub: Hub) -> list[Finding]:
    """Check what profiles and groups set, also profiles that a function lists for the owner.

    The spawner keeps the function's answer, so that one that never answers is waited for once.
    """
    spawner = hub.spawner
    settings = configuration.check(hub.config, type(spawner))
    found, listed = list(configuration.all_slips(settings)), spawner.profile_list
    if callable(listed):
        answer = asyncio.ensure_future(_asked(listed, spawner))
        spawner.profile_list = lambda _: answer
        try:
            listed = await answer
        except Exception as failed:  # noqa: BLE001 - it is the administrator's function
            listed, text = (), f"KubeSpawner.profile_list fails for {spawner.user.name}: {failed!r}"
            if hub.owner != NOBODY:  # of nobody, the trial of the servers says so
                found.append(override_mistakes.Slip(text, True))
        found += override_mistakes.of_profiles(listed, settings)
    advice = "Correct it, or remove it."
    return [(error if it.is_fatal else warning)("slip", f"{it.text}.", advice) for it in found]


async def _asked(function: Callable[[GPUSpawner], Any], spawner: GPUSpawner) -> Any:
    async with within_start_timeout(spawner):
        return await maybe_future(function(spawner))


def without_servers(hub: Hub, failed: UnusableError) -> Finding:
    """Say why KubeSpawner lists no profiles: for nobody, or by code for the owner."""
    is_broken = isinstance(failed.__cause__, Refusal)
    is_function = callable(hub.spawner.profile_list)
    if is_broken and not is_function:
        advice = "Correct KubeSpawner.profile_list."
        return error("profiles", f"No user can start a server: {failed}", advice)
    severity, whom = _of_owner(hub.owner)
    does = "fails for" if is_broken else "forbids it to"
    what = "The function of KubeSpawner.profile_list" if is_function else "Code of yours"
    text = f"{what} {does} {whom}: {failed}"
    advice = "Name somebody who may start servers with --user, or correct it."
    return Finding("profiles", severity, text, advice)


def without_spawner(owner: Owner, failed: UnusableError) -> Finding:
    """Say that the administrator's class makes no spawner, so nothing else can be checked.

    It is an error also for nobody in particular: a warning alone would read like a sound hub.
    """
    text = f"The doctor can't check this hub: no spawner can be made for {_of_owner(owner)[1]}"
    user = "a real" if owner == NOBODY else "another"
    advice = (
        f"Name {user} user with --user, or let the class do without what the doctor doesn't know: "
        "its users have only a name and groups."
    )
    return error("own-code", f"{text}: {failed}.", advice)


def own_code(hub: Hub, failure: Exception) -> Cause:
    """Say that the administrator's functions and classes make no pod for the owner."""
    severity, whom = _of_owner(hub.owner)
    return Cause(
        "own-code",
        "The doctor can't check {servers}, because a function or class of yours fails for "
        f"{whom}: {failure!r}.",
        "Name a real user with --user, and their groups with --group, or correct it. The doctor "
        "knows nothing else of a user; --start starts a server in the hub, which does.",
        worst=severity,
    )


def _of_owner(owner: Owner) -> tuple[Severity, str]:
    """Return how bad it is if code fails for the owner, and who that is."""
    if owner == NOBODY:
        return Severity.WARNING, "an imagined user"
    return Severity.ERROR, quote(owner.name)


def _is_ours(given: object) -> bool:
    if isinstance(given, str) and given.lower() == "gpuspawner":  # an entry point, in any case
        return True
    try:
        return issubclass(imported(given), GPUSpawner)
    except SpawnerClassError:  # also if it isn't set
        return False
