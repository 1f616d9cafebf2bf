"""Groups nodes by the reason why they can't hold a pod, with details for administrators."""

from collections.abc import Mapping, Sequence

import msgspec

from gpuspawner.doctor.checks.labels import Label, wanted, written
from gpuspawner.kube.pods import Pod
from gpuspawner.messages.words import figure
from gpuspawner.scheduling import (
    ClusterState,
    Failure,
    Failures,
    Insufficient,
    NodeInfo,
    Rejected,
    TooManyVolumes,
    Unselected,
    Untolerated,
    Verdict,
    VolumeElsewhere,
)


class SharedReason(msgspec.Struct, frozen=True):
    """Nodes that share a reason.

    Attributes:
        later: When they could hold the pod.
    """

    nodes: tuple[NodeInfo, ...]
    text: str
    later: str


def reasons(
    state: ClusterState, pod: Pod, verdict: Verdict, every: Mapping[Label, str]
) -> list[SharedReason]:
    """Group all nodes; those that come nearest to holding the pod are first.

    *every* has the labels that settings ask of every server's node, and those settings.
    """
    groups: dict[tuple[int, tuple[str, ...]], list[tuple[NodeInfo, Failures]]] = {}
    busy, away, fits = set(verdict.busy), set(verdict.away), set(verdict.feasible)
    for name, node in state.nodes.items():
        failures = verdict.failures.get(name, ())
        rank = 0 if name in fits else 1 if name in busy else 2 if name in away else 3
        key = tuple(_key(failure, node, pod, every) for failure in failures)
        groups.setdefault((rank, key), []).append((node, failures))
    return [
        SharedReason(tuple(node for node, _ in its), _text(key, its), _LATER[rank])
        for (rank, key), its in sorted(groups.items(), key=lambda it: (it[0][0], -len(it[1])))
    ]


_LATER = ("now", "when pods end", "when it is back", "-")


def _key(failure: Failure, node: NodeInfo, pod: Pod, every: Mapping[Label, str]) -> str:
    """Return the text of a failure; what differs from node to node is left to `_text`."""
    match failure:
        case Insufficient():
            return failure.reason
        case Untolerated(key=key, value=value, effect=effect):
            has = f"{key}={value}" if value else key
            return f"untolerated taint {has}:{effect}"
        case Unselected():
            return _unselected(node, pod, every)
        case TooManyVolumes(driver=driver, limit=limit):
            return f"{failure.reason} ({limit} of {driver})"
        case VolumeElsewhere(claim=claim, volume=volume):
            return f"{failure.reason} (claim {claim}, volume {volume})"
        case Rejected(text=text):
            return text
    return failure.reason


def _unselected(node: NodeInfo, pod: Pod, every: Mapping[Label, str]) -> str:
    for label in wanted(pod.spec):
        if node.labels.get(label[0]) not in label[1]:
            place = f", for which {every[label]} asks" if label in every else ""
            return f"no label {written(label)}{place}"
    return Unselected.reason


def _text(key: tuple[str, ...], its: Sequence[tuple[NodeInfo, Failures]]) -> str:
    if not key:
        return "has room"
    texts = []
    for at, text in enumerate(key):
        short = [f for _, failures in its if isinstance(f := failures[at], Insufficient)]
        texts.append(f"{text}: {_amounts(short)}" if short else text)
    return "; ".join(texts)


def _amounts(short: Sequence[Insufficient]) -> str:
    """Say what a pod asks for, and the most that one of the nodes has."""
    resource, asked = short[0].resource, short[0].asked
    free, most = max(it.free for it in short), max(it.allocatable for it in short)
    return (
        f"asks for {figure(resource, asked)}, free {figure(resource, max(0, free))} of "
        f"{figure(resource, most)}"
    )
