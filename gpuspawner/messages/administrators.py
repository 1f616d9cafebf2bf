"""Lines for administrators in the hub's log, in the terms of Kubernetes and always in English."""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

import msgspec

from gpuspawner.cluster.health_log import explain_health
from gpuspawner.cluster.schedulers import (
    Declared,
    DefaultScheduler,
    Judgement,
    OfChart,
    OfProvider,
    UnknownScheduler,
)
from gpuspawner.compat.hub_limits import Conflict, Limits
from gpuspawner.kube.quoting import count
from gpuspawner.messages.kueue import explain as explain_queue
from gpuspawner.messages.scaling import explain_obstacles
from gpuspawner.offers.inventory import Inventory
from gpuspawner.preflight.decision import (
    Overruled,
    Refuse,
    Start,
    TaintedNodes,
    UnknownRules,
    ViewNotLive,
    Wait,
)
from gpuspawner.scaling.outlook import Source
from gpuspawner.scheduling.rules import DEFAULT_SCHEDULER

_MOST_POOLS = 8

# What comes of it while the hub may not read a kind.
_ALL = "every server starts unchecked"
_WITH_CLAIMS = "servers with a home directory or another claim start unchecked"
_WITH_NEW_VOLUMES = "servers whose volume waits for its first server start unchecked"
_KARPENTER = "the hub doesn't know which nodes Karpenter can still add"
_MACHINES = "the hub doesn't know whether Cluster Autoscaler adds machines, so it tries"
_KUEUE = "the hub doesn't know Kueue's quotas, so it creates the pod and waits for Kueue"
WITHOUT = {
    "nodes": _ALL,
    "pods": _ALL,
    "namespaces": "servers whose place depends on a namespaceSelector start unchecked",
    "persistentvolumeclaims": _WITH_CLAIMS,
    "persistentvolumes": _WITH_CLAIMS,
    "storageclasses": _WITH_CLAIMS,
    "csinodes": "servers with a CSI volume start unchecked",
    "csidrivers": f"{_WITH_NEW_VOLUMES}; from kube-scheduler 1.37 on, all with a CSI volume",
    "csistoragecapacities": _WITH_NEW_VOLUMES,
    "volumeattachments": "servers with a CSI volume start unchecked, if nodes limit their number",
    "priorityclasses": "servers whose dry run fails start unchecked",
    "deviceclasses": "servers with a device that no node has start unchecked, and aren't refused",
    "nodepools": _KARPENTER,
    "nodeclaims": _KARPENTER,
    "clusterautoscalers": _MACHINES,
    "machineautoscalers": _MACHINES,
    "localqueues": _KUEUE,
    "clusterqueues": _KUEUE,
    "cohorts": _KUEUE,
    "resourceflavors": _KUEUE,
    "workloads": "the hub doesn't know the places of servers that wait in Kueue's queues",
    "configmaps": "if Cluster Autoscaler runs, the hub doesn't know its limits",
}
"""What comes of it if the hub may not read a kind; RBAC names it so."""
_NAMES = {"configmaps": "the ConfigMap of GPUSpawner.autoscaler_status"}
GRANT = (
    "Apply what gpuspawner rbac prints for the hub's namespace, service account and "
    "autoscaler_status, or grant {verbs} on {what} in a ClusterRole of yours."
)
"""What to do about a right that the hub lacks."""


def explain_unknown(decision: Start) -> tuple[str, ...]:
    """Explain why it is unknown whether a server that starts has room."""
    lines = []
    for note in decision.notes:
        match note:
            case UnknownRules(facts):
                lines.append(f"Room for the pod is unknown: {'; '.join(facts)}")
            case ViewNotLive(health):
                lines.append(f"Room for the pod is unknown. {explain_health(health)}")
    return tuple(lines)


def explain_refusal(decision: Refuse) -> str:
    """Explain a refusal in kube-scheduler's words, with the taints that these leave out."""
    grant = decision.grant
    asked = f"{grant.gpus} × {grant.accelerator.key}" if grant.accelerator else "no accelerator"
    said = decision.rejection.text if decision.rejection else decision.scheduler_message
    said = explain_queue(decision.queue) if decision.queue else said
    if decision.one_share:
        said = "the nodes' device plugins give a container only one share of a GPU"
    if decision.taints:
        said = "; ".join(filter(None, (said.rstrip("."), *map(_tainted, decision.taints))))
    said = "; ".join(filter(None, (said, explain_obstacles(decision.obstacles))))
    because = f": {said}" if said else ""
    return f"Refused ({decision.reason}; {asked}){because}"


def explain_overruled(decision: Start | Wait) -> tuple[str, ...]:
    """Explain the refusals that ``GPUSpawner.preflight = "warn"`` overrules."""
    if isinstance(decision, Wait):
        return ()
    refusals = [note.refusal for note in decision.notes if isinstance(note, Overruled)]
    return tuple(explain_refusal(refusal) for refusal in refusals)


def _tainted(taint: TaintedNodes) -> str:
    """Name a taint as kubectl writes it: ``key:effect`` if it has no value."""
    key = f"{taint.key}={taint.value}" if taint.value else taint.key
    return (
        f"{taint.nodes} node(s) have the taint {key}:{taint.effect}, which the pod doesn't tolerate"
    )


def explain_scheduler(judgement: Judgement) -> str:
    """Say how the hub judges a scheduler, and why."""
    match judgement:
        case DefaultScheduler(name):
            return f"{name}, Kubernetes' own"
        case Declared(name):
            return f"{name}, trusted by GPUSpawner.default_filter_schedulers"
        case OfProvider(name, provider):
            return f"{name}, kube-scheduler with {provider}'s profile, which changes only scores"
        case OfChart(name, version):
            return f"{name}, kube-scheduler {version} of the chart; its values change only scores"
        case UnknownScheduler(name):
            return f"{name}, unknown: its servers start unchecked"


def explain_stock(stock: Inventory) -> str:
    """Say what the cluster has for an accelerator or profile now."""
    if not stock.nodes:
        return f"{stock.name}: no node"
    nodes = f"{stock.name}: {count(stock.nodes)}"
    if not stock.gpus:
        return f"{nodes}, but no healthy GPU is reported there"
    return f"{nodes}, {stock.free} of {stock.gpus} GPUs free"


BY_FUNCTION = "profiles: a function lists them for each user, so they aren't counted here"
"""Why no profile is counted."""

GPUS_FOR_ALL = (
    "every server gets GPUs by KubeSpawner.extra_resource_limits, so users don't choose them; "
    "to let users choose, configure GPUSpawner.accelerators"
)
"""Why users choose no GPUs."""


def explain_declared_pool(key: str, max_nodes: int) -> str:
    """Say that an administrator's pool can grow."""
    return f"{key} can grow to {count(max_nodes)} (scale_up)"


def explain_seen_pools(source: Source, names: Sequence[str]) -> str:
    """Name the pools of an autoscaler that the hub sees, but not more than fit on a line."""
    more = len(names) - _MOST_POOLS
    listed = [*names[:_MOST_POOLS], *([f"{more} more"] if more > 0 else [])]
    return f"pools of {source}: {', '.join(listed)}"


def explain_other_pools(source: Source | None) -> tuple[str, ...]:
    """Say why a pool that the hub doesn't see may grow; nothing if none may."""
    match source:
        case None:
            return ()
        case Source.UNREAD:
            return ("other pools may grow (the hub can't read Karpenter's NodePools)",)
        case Source.UNREAD_STATUS:
            why = "is old, is text as before 1.30, or can't be read"
            return (f"other pools may grow (Cluster Autoscaler's status {why})",)
        case Source.CONFIGURATION:
            return ('other pools may grow (GPUSpawner.autoscaling = "always")',)
        case _:
            return ("other pools may grow (by the nodes, or by objects for an autoscaler)",)


# What may be wrong, for the report at the hub's start and for the doctor.


class Severity(StrEnum):
    """How bad a finding is, the worst first."""

    ERROR = "error"
    """Some servers can't start, or start unchecked. The doctor's exit status is 1."""
    WARNING = "warning"
    """Users will be surprised, or some servers start unchecked."""
    FINE = "fine"
    """Nothing to do."""


class Finding(msgspec.Struct, frozen=True):
    """One result of a check.

    Attributes:
        id: A short name, which never changes, for programs: ``rights-nodes``.
        text: One sentence: what is so. It may quote the cluster, so it isn't safe to print yet.
        advice: One sentence: what to do. Empty if there is nothing to do.
    """

    id: str
    severity: Severity
    text: str
    advice: str = ""


def error(id_: str, text: str, advice: str) -> Finding:
    """Make a finding that breaks something."""
    return Finding(id_, Severity.ERROR, text, advice)


def warning(id_: str, text: str, advice: str) -> Finding:
    """Make a finding that surprises somebody."""
    return Finding(id_, Severity.WARNING, text, advice)


def fine(id_: str, text: str, advice: str = "") -> Finding:
    """Make a finding that needs no action."""
    return Finding(id_, Severity.FINE, text, advice)


def find_unknown_schedulers(judged: Iterable[Judgement]) -> Iterator[Finding]:
    """Say what comes of each scheduler that the hub doesn't know, and why the hub doesn't."""
    for unknown in judged:
        if isinstance(unknown, UnknownScheduler):
            why = "the hub doesn't know how it filters nodes"
            if unknown.changes:
                why = f"{' and '.join(unknown.changes)} may change how it filters nodes"
            yield error(
                "scheduler",
                f"Every server of the scheduler {unknown.name} starts unchecked: {why}.",
                f"If {unknown.name} excludes the same nodes as kube-scheduler's default profile, "
                "add its name to GPUSpawner.default_filter_schedulers. Otherwise use "
                f"{DEFAULT_SCHEDULER}.",
            )


def find_missing_rights(plurals: Iterable[str]) -> Iterator[Finding]:
    """Say which kinds the hub may not read, and what comes of it."""
    by_effect: dict[str, list[str]] = {}
    for plural in plurals:
        by_effect.setdefault(WITHOUT[plural], []).append(_NAMES.get(plural, plural))
    for effect, kinds in by_effect.items():
        verbs, what = "list and watch", ", ".join(kinds)
        advice = GRANT.format(verbs=verbs, what=what)
        yield warning("rights", f"no right to {verbs} {what}: {effect}.", advice)


def find_conflict(conflict: Conflict, limits: Limits) -> Finding:
    """Say which limits defeat each other, and what happens then."""
    match conflict:
        case Conflict.SHORT_PREPARING:
            return warning(
                "limit-preparing",
                f"GPUSpawner.preparing_timeout is {limits.preparing:g} s: a start that pulls a "
                "large image takes longer and fails.",
                "Set it to at least 600.",
            )
        case Conflict.LATE_PROGRESS:
            return warning(
                "limit-progress",
                f"slow_spawn_timeout is {limits.slow_spawn:g} s: users see no progress page until "
                "then, and a proxy in front of the hub may give up first.",
                "Set c.JupyterHub.tornado_settings = {'slow_spawn_timeout': 0}.",
            )
        case Conflict.LONG_RETRIES:
            return warning(
                "limit-retries",
                f"KubeSpawner.k8s_api_request_retry_timeout is {limits.api_retries:g} s: one "
                "request to a slow API server can take all the time of a start, "
                f"{limits.start:g} s.",
                "Set it to a small part of that time.",
            )
        case Conflict.SHORT_REQUEST:
            return warning(
                "limit-request",
                f"KubeSpawner.k8s_api_request_timeout is {limits.api_request:g} s: if admission "
                "takes longer, KubeSpawner deletes the pod that it has just created, and "
                f"gpuspawner's dry run waits {limits.admission:g} s.",
                f"Set it to more than {limits.admission:g}.",
            )
