"""Which label of a selector no node has, and what the administrator may have meant."""

import difflib
from collections.abc import Iterator, Sequence

import msgspec

from gpuspawner.kube.pods import PodSpec
from gpuspawner.scheduling import ClusterState, NodeInfo

_ALIKE = 0.75


class Wrong(msgspec.Struct, frozen=True):
    """A label that no node has.

    Attributes:
        label: ``key=value``.
        instead: The most similar label of a node; "" if none is similar.
        nodes: The nodes that have it.
    """

    label: str
    instead: str = ""
    nodes: tuple[NodeInfo, ...] = ()


def wrong(state: ClusterState, spec: PodSpec) -> Wrong | None:
    """Return the first label of a pod's selectors that no node has, if there is one."""
    nodes = list(state.nodes.values())
    for key, values in _wanted(spec):
        if any(node.labels.get(key) in values for node in nodes):
            continue
        label = f"{key}={' or '.join(values)}"
        instead = _other_value(nodes, key, values) or _other_key(nodes, key, values)
        if instead is None:
            return Wrong(label)
        its = tuple(node for node in nodes if node.labels.get(instead[0]) == instead[1])
        return Wrong(label, "=".join(instead), its)
    return None


def _wanted(spec: PodSpec) -> Iterator[tuple[str, Sequence[str]]]:
    for key, value in (spec.node_selector or {}).items():
        yield key, [value]
    required = spec.required_nodes
    terms = (required.node_selector_terms if required else None) or ()
    if len(terms) == 1:  # with several terms, a node needs to match only one
        for expression in terms[0].match_expressions or ():
            if expression.operator == "In":
                yield expression.key, expression.values or ()


def _other_value(nodes: list[NodeInfo], key: str, values: Sequence[str]) -> tuple[str, str] | None:
    there = {node.labels[key] for node in nodes if key in node.labels}
    near = _nearest(values, there)
    return (key, near) if near else None


def _other_key(nodes: list[NodeInfo], key: str, values: Sequence[str]) -> tuple[str, str] | None:
    """Find a similar key that has the wanted value on some node, or one of any key."""
    having = [(k, v) for node in nodes for k, v in node.labels.items() if v in values]
    near = _nearest([key], {k for k, _ in having})
    return next(((k, v) for k, v in having if k == near), None)


def _nearest(words: Sequence[str], known: set[str]) -> str | None:
    """Compare without regard to case; the names of models differ in few letters."""
    lower = {word.lower(): word for word in sorted(known)}
    for word in words:
        near = difflib.get_close_matches(word.lower(), lower, n=1, cutoff=_ALIKE)
        if near:
            return lower[near[0]]
    return None
