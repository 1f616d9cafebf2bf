"""Why nobody could ever start a server, as far as an administrator can mend it."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gpuspawner.doctor.checks import labels
from gpuspawner.doctor.checks.labels import Selectors, Wrong
from gpuspawner.doctor.nodes import names, selected
from gpuspawner.gates.what_if import OfferedServer, Tried
from gpuspawner.kube.quoting import count, listing, nearest
from gpuspawner.messages.administrators import Finding, Severity
from gpuspawner.messages.kueue import explain
from gpuspawner.messages.words import amount, figure
from gpuspawner.offers.vendors import is_gpu
from gpuspawner.preflight.decider import BY_KUEUE
from gpuspawner.preflight.decision import (
    Reason,
    Refuse,
    Start,
    TaintedNodes,
    UnknownRules,
    Wait,
    on_nodes,
)
from gpuspawner.preflight.kueue import Never
from gpuspawner.preflight.rejection import (
    Denied,
    Insecure,
    Missing,
    OutOfRange,
    OverQuota,
    QuotaDemands,
    Rejection,
)
from gpuspawner.scaling.outlook import MayScaleUp, Source
from gpuspawner.scheduling import ClusterState, NodeInfo
from gpuspawner.scheduling.requests import is_device
from gpuspawner.scheduling.shared_gpus import refuses, several
from gpuspawner.scheduling.verdict import Why

_UNSEEN = (Source.NODES, Source.UNREAD, Source.UNREAD_STATUS, Source.CONFIGURATION)
"""Who only hints at pools that the hub doesn't see."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing to mend; several servers may suffer from it.

    Attributes:
        text: As of a finding, with ``{servers}`` for their names.
        advice: As of a finding, with ``{place}`` for the place in the configuration.
        detail: What differs from server to server.
        worst: The severity if one of the servers is the smallest of its offer.
    """

    id: str
    text: str
    advice: str
    detail: str = field(default="", compare=False)
    worst: Severity = Severity.ERROR

    def finding(self, servers: Sequence[tuple[OfferedServer, str]]) -> Finding:
        """Make the finding about these servers, each with its detail.

        It is only a warning if all smallest servers can start.
        """
        is_all = any(it.smallest for it, _ in servers)
        named = [f"{it.name} ({detail})" if detail else it.name for it, detail in servers]
        # The names come from the configuration and the cluster, and may contain braces.
        text = self.text.replace("{servers}", listing(named))
        places = list(dict.fromkeys(it.place for it, _ in servers))
        advice = self.advice.replace("{place}", " and ".join(places))
        # An error of a larger server is a warning.
        severity = self.worst if is_all or self.worst is not Severity.ERROR else Severity.WARNING
        return Finding(self.id, severity, text, advice)


def cause(state: ClusterState, tried: Tried, selectors: Selectors) -> Cause | None:
    """Return why nobody could start the server on this cluster; None if somebody could."""
    if tried.decision is None:
        return Cause(
            "unusable", f"Nobody can start {{servers}}: {tried.problem}", "Correct {place}."
        )
    if isinstance(tried.decision, Refuse) and isinstance(tried.decision.queue, Never):
        return _never_in_queue(tried.decision.queue)
    match on_nodes(tried.decision):
        case Start(notes=notes):
            unknown = [fact for it in notes if isinstance(it, UnknownRules) for fact in it.facts]
            return _unchecked(unknown) if unknown else _one_share(state, tried, Severity.WARNING)
        case Refuse(rejection=Rejection() as rejection):
            return _rejected(rejection)
        case Refuse(reason=Reason.IMPOSSIBLE) as refusal:
            return _impossible(state, tried, refusal, selectors)
        case Refuse(reason=Reason.AWAY, away=away):
            return _away([it for it in state.nodes.values() if it.name in away])
        case Wait(scale_up=MayScaleUp() as outlook) if _is_a_guess(outlook):
            return None if selected(state, tried) else _unknown_pool(state, tried, selectors)
    return None


def _never_in_queue(no: Never) -> Cause:
    return Cause(
        "kueue-refused",
        f"Nobody can start {{servers}}: {explain(no)}.",
        "Offer less in {place}, or raise the quota.",
    )


def _is_a_guess(outlook: MayScaleUp) -> bool:
    """Whether no pool that the hub sees is adding a node; any young node might be on its way."""
    return not outlook.on_its_way or outlook.source in _UNSEEN


def _unchecked(facts: list[str]) -> Cause | None:
    others = [fact for fact in facts if not fact.startswith(_TOLD_ELSEWHERE)]
    if not others:
        return None
    why = "; ".join(others).rstrip(".")
    return Cause(
        "unchecked",
        f"gpuspawner can't check for {{servers}} whether a node has room: {why}.",
        "They start unchecked. The documentation's page “What the scheduler would do” lists what "
        "is unknown.",
    )


_TOLD_ELSEWHERE = (
    Why.OTHER_SCHEDULER.value, Why.NOT_KNOWN.value, Why.NEW_VOLUME.value, *BY_KUEUE.facts
)  # fmt: skip
"""Checks of the scheduler, rights, storage and queues say these once for all servers."""


def _rejected(rejection: Rejection) -> Cause | None:
    # Before the reason stands the name of the pod, which every dry run makes up.
    reason = re.split(" is (?:forbidden|invalid): ", rejection.text, maxsplit=1)[-1]
    said = f"The API server rejects {{servers}}: {reason.rstrip('.')}."
    match rejection.cause:
        case OverQuota(uses=uses):
            if all(use.asked <= use.limit for use in uses):
                return None  # it fits once other servers end
            return Cause("quota", said, "Raise the ResourceQuota, or offer less in {place}.")
        case QuotaDemands(resources=resources):
            asked = ", ".join(resources)
            advice = f"Let every server request {asked}: set the choices, or KubeSpawner's limits."
            return Cause("quota", said, advice)
        case OutOfRange():
            return Cause("limit-range", said, "Change the LimitRange, or what {place} offers.")
        case Insecure(level=level):
            advice = f"Make the pods meet the level {level}, or change the namespace's label."
            return Cause("pod-security", said, advice)
        case Missing(kind=kind, name=name):
            advice = f"Create the {kind} {name}, or correct its name in {{place}}."
            return Cause("missing", said, advice)
        case Denied():
            return Cause("denied", said, "Ask who runs that policy or webhook what it requires.")
        case _:
            return Cause("rejected", said, "Correct what the API server names.")


def _away(nodes: Sequence[NodeInfo]) -> Cause:
    return Cause(
        "nodes-away",
        f"Nobody can start {{servers}}: there is room only on {count(len(nodes))} "
        f"({names(nodes)}), now cordoned, not ready, or without healthy GPUs or volume drivers.",
        "See kubectl get nodes; kubectl uncordon makes a cordoned node available again.",
    )


def _impossible(
    state: ClusterState, tried: Tried, refusal: Refuse, selectors: Selectors
) -> Cause | None:
    nodes = selected(state, tried)
    if not nodes:
        return _no_node(state, tried, selectors)
    if refusal.one_share:
        return _one_share(state, tried, Severity.ERROR)
    is_kept_off = not refusal.candidates
    if refusal.gpus is not None:
        resource, asked = refusal.gpus.resource, refusal.gpus.asked
        if not any(it.capacity.get(resource) or it.allocatable.get(resource) for it in nodes):
            return _no_resource(nodes, resource)
        is_kept_off = is_kept_off or refusal.is_reserved or not refusal.gpus.most
        nodes = [it for it in nodes if it.capacity.get(resource, 0) >= asked]
    return (_untolerated(nodes, refusal.taints) if is_kept_off else None) or _too_large(refusal)


def _untolerated(nodes: Sequence[NodeInfo], taints: Iterable[TaintedNodes]) -> Cause | None:
    """Name the first taint that one of these nodes has."""
    for taint in taints:
        kind = taint.key, taint.value, taint.effect
        tainted = [it for it in nodes if kind in {(t.key, t.value, t.effect) for t in it.taints}]
        if tainted:
            text = f"{taint.key}={taint.value}" if taint.value else taint.key
            return Cause(
                "untolerated-taint",
                f"Nobody can start {{servers}}: the pod doesn't tolerate the taint "
                f"{text}:{taint.effect} of {count(len(tainted))} ({names(tainted)}).",
                f"Add to the tolerations of {{place}}: {_toleration(taint.key, taint.effect)}.",
            )
    return None


def _one_share(state: ClusterState, tried: Tried, worst: Severity) -> Cause | None:
    """Name the nodes that refuse several shares of a GPU, or may; None if there are none."""
    asked = several(tried.pod) if tried.pod else ()
    nodes = [it for it in selected(state, tried) if refuses(it, asked) is not False]
    if not nodes:
        return None
    give = "gives" if all(refuses(it, asked) for it in nodes) else "may give"
    return Cause(
        "one-share",
        f"{{servers}} asks for several shares of a GPU, but the device plugin of "
        f"{count(len(nodes))} ({names(nodes)}) {give} a container only one.",
        "Ask for one in {place}. If its failRequestsGreaterThanOne is false, NVIDIA's plugin gives "
        "several, but perhaps all of one GPU.",
        worst=worst,
    )


def _toleration(key: str, effect: str) -> str:
    return f'{{"key": "{key}", "operator": "Exists", "effect": "{effect}"}}'


def _no_node(state: ClusterState, tried: Tried, selectors: Selectors) -> Cause:
    if not state.nodes:
        return Cause(
            "no-node",
            "The cluster has no nodes, so nobody can start {servers}.",
            "Add nodes; if an autoscaler adds them, set GPUSpawner.autoscaling = 'always'.",
        )
    wrong = _wrong(state, tried, selectors)
    if wrong is None:
        return Cause(
            "no-node",
            "No node has all labels that {servers} needs.",
            "Compare the selectors in {place} with kubectl get nodes --show-labels.",
        )
    if wrong.is_lacking:
        return _lacking(wrong)
    advice = (
        f"Write {wrong.instead} in {{place}}; that label is on {count(len(wrong.nodes))}."
        if wrong.instead
        else "Correct {place}, or add such nodes; if an autoscaler adds them, declare scale_up."
    )
    text = f"No node has the label {wrong.label}, which {{servers}} needs."
    return Cause("no-node", text, advice)


def _wrong(state: ClusterState, tried: Tried, selectors: Selectors) -> Wrong | None:
    devices = filter(is_device, tried.resources)
    return labels.wrong(state, tried.pod.spec, devices, selectors) if tried.pod else None


def _lacking(wrong: Wrong, worst: Severity = Severity.ERROR) -> Cause:
    """Name what asks for a label that the right nodes lack."""
    place = wrong.setting or "{place}"
    near = f" with its other labels ({names(wrong.nodes)})" if wrong.nodes else ""
    return Cause(
        "no-node",
        f"Nobody can start {{servers}}: no node{near} has the label {wrong.label}, for which "
        f"{place} asks.",
        f"Label the nodes with it (kubectl label nodes), or change {place}.",
        worst=worst,
    )


def _unknown_pool(state: ClusterState, tried: Tried, selectors: Selectors) -> Cause | None:
    wrong = _wrong(state, tried, selectors)
    if wrong is None:
        return None
    if wrong.is_lacking:
        return _lacking(wrong, Severity.WARNING)
    meant = f"If you mean {wrong.instead}, write that in {{place}}. " if wrong.instead else ""
    return Cause(
        "unknown-pool",
        f"No node has the label {wrong.label}, which {{servers}} needs, and it is unknown whether "
        "an autoscaler can add one.",
        f"{meant}If a pool with this label is at zero nodes, declare its scale_up.",
        worst=Severity.WARNING if meant else Severity.FINE,
    )


def _no_resource(nodes: Sequence[NodeInfo], resource: str) -> Cause:
    there = Counter(name for node in nodes for name, it in node.capacity.items() if it > 0)
    near = nearest(resource, filter(is_device, there)) or listing(sorted(filter(is_gpu, there)))
    advice = f"Write {near} in {{place}}." if near else "Install its device plugin on them."
    return Cause(
        "no-resource",
        f"Nobody can start {{servers}}: there is no {resource} on {count(len(nodes))} "
        f"({names(nodes)}).",
        advice,
    )


def _too_large(refusal: Refuse) -> Cause | None:
    short = refusal.shortage
    if refusal.gpus is not None and refusal.gpus.most < refusal.gpus.asked:
        short = refusal.gpus
    if short is None or short.most >= short.asked:
        said = refusal.scheduler_message.rstrip(".")
        text = f"Nobody can start {{servers}}: {said}."
        advice = "Run `gpuspawner explain` with the same name for the reason on each node."
        return Cause("impossible", text, advice)
    return Cause(
        "too-large",
        f"{{servers}} needs {amount(short.resource, short.asked)}, more than any of its nodes has.",
        "Offer less in {place}, or add larger nodes.",
        f"its nodes have at most {figure(short.resource, short.most)}",
    )
