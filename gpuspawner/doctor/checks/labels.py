"""Which label of a selector no node has, what the administrator may have meant, and who asks it."""

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from gpuspawner.kube.pods import Pod, PodSpec
from gpuspawner.scheduling import ClusterState, NodeInfo
from gpuspawner.scheduling.node_affinity import selecting

_ALIKE = 0.75
_SELECTOR = "KubeSpawner.node_selector (in the chart, singleuser.nodeSelector)"
_REQUIRED = (
    "KubeSpawner.node_affinity_required (in the chart, singleuser.extraNodeAffinity.required and "
    "scheduling.userPods.nodeAffinity.matchNodePurpose)"
)

Label = tuple[str, tuple[str, ...]]
"""A key, and the values that a node may have."""


class Wrong(msgspec.Struct, frozen=True):
    """A label that no node has, or none of those that have all the others.

    Attributes:
        label: ``key=value``.
        instead: The most similar label of a node; "" if none is similar.
        nodes: The nodes that have it; or those that lack only the label.
        setting: What asks every server's node for the label; "" if only the offer does.
    """

    label: str
    instead: str = ""
    nodes: tuple[NodeInfo, ...] = ()
    setting: str = ""

    @property
    def is_lacking(self) -> bool:
        """Whether the label itself is right, and the right nodes lack it."""
        return bool(self.setting or (self.nodes and not self.instead))


class Selectors(msgspec.Struct, frozen=True):
    """What selects nodes besides the server that is looked at.

    Attributes:
        every: The labels that KubeSpawner's settings ask of every server's node, and where.
        offered: The labels that some offer selects: nobody means them by another one.
    """

    every: Mapping[Label, str]
    offered: Collection[str] = ()


def written(label: Label) -> str:
    """Return a label as ``key=value``."""
    return f"{label[0]}={' or '.join(label[1])}"


def of_every_server(settings: Any) -> dict[Label, str]:
    """Return the labels that KubeSpawner's settings ask of every server's node, and where."""
    given = settings.node_affinity_required
    terms = [*given.values()] if isinstance(given, Mapping) else given
    selector, required = _of(settings.node_selector, ()), _of({}, terms)
    return dict.fromkeys(required, _REQUIRED) | dict.fromkeys(selector, _SELECTOR)


def wanted(spec: PodSpec) -> Iterator[Label]:
    """Yield the labels that a pod's node must have."""
    for key, value in (spec.node_selector or {}).items():
        yield key, (value,)
    required = spec.required_nodes
    terms = (required.node_selector_terms if required else None) or ()
    if len(terms) == 1:  # with several terms, a node needs to match only one
        for expression in terms[0].match_expressions or ():
            if expression.operator == "In":
                yield expression.key, tuple(expression.values or ())


def selected_by(pod: Pod | None) -> Iterator[str]:
    """Yield each ``key=value`` that a pod's node may have to match."""
    for key, values in wanted(pod.spec) if pod else ():
        yield from (f"{key}={value}" for value in values)


def wrong(
    state: ClusterState, spec: PodSpec, devices: Iterable[str], selectors: Selectors
) -> Wrong | None:
    """Return the first label of a pod's selectors that no node has, if there is one.

    Otherwise return the one that all nodes lack which have the others and the *devices*.
    """
    nodes = list(state.nodes.values())
    labels = list(wanted(spec))
    for label in labels:
        if not any(_has(node, label) for node in nodes):
            setting = selectors.every.get(label, "")
            instead = "" if setting else _instead(nodes, label, selectors.offered)
            its = tuple(it for it in nodes if instead in map("=".join, it.labels.items()))
            return Wrong(written(label), instead, its, setting)
    fit = [it for it in nodes if all(it.capacity.get(device) for device in devices)]
    for label in sorted(labels, key=lambda it: it not in selectors.every):
        others = [it for it in labels if it != label]
        if near := tuple(it for it in fit if all(_has(it, other) for other in others)):
            return Wrong(written(label), "", near, selectors.every.get(label, ""))
    return None


def _has(node: NodeInfo, label: Label) -> bool:
    return node.labels.get(label[0]) in label[1]


def _of(labels: object, terms: object) -> list[Label]:
    spec = selecting(labels, terms)
    return [*wanted(spec)] if spec is not None else []


def _instead(nodes: list[NodeInfo], label: Label, offered: Collection[str]) -> str:
    """Return the label that was meant: of a similar value, or of a similar key."""
    key, values = label
    there = {node.labels[key] for node in nodes if key in node.labels}
    free = {value for value in there if f"{key}={value}" not in offered}
    if near := _nearest(values, free):
        return f"{key}={near}"
    having = [(k, v) for node in nodes for k, v in node.labels.items() if v in values]
    other = _nearest([key], {k for k, v in having if f"{k}={v}" not in offered})
    return next((f"{k}={v}" for k, v in having if k == other), "")


def _nearest(words: Sequence[str], known: set[str]) -> str | None:
    """Compare without regard to case; the names of models differ in few letters."""
    lower = {word.lower(): word for word in sorted(known)}
    for word in words:
        for near in difflib.get_close_matches(word.lower(), lower, n=3, cutoff=_ALIKE):
            if _may_mean(word.lower(), near):
                return lower[near]
    return None


def _may_mean(word: str, near: str) -> bool:
    """Whether the parts that differ are alike too: ``nvidia-tesla-p100`` is no slip for a T4."""
    one, two = (re.split(r"[^a-z0-9]+", it) for it in (word, near))
    mine, theirs = "".join(it for it in one if it not in two), [it for it in two if it not in one]
    ratio = difflib.SequenceMatcher(None, mine, "".join(theirs)).ratio()
    return not mine or not theirs or ratio > _ALIKE
