"""Node affinity and nodeSelector: plugin NodeAffinity (v1.36.2)."""

from collections.abc import Mapping
from itertools import chain
from typing import NamedTuple

from gpuspawner.kube.objects import convert
from gpuspawner.kube.pods import Pod, PodSpec

from .labels import Labels, NodeTerm, compile_node_selector
from .node_kinds import Reads

_NO_VALUES: frozenset[str] = frozenset()

CONFLICT = "pod affinity terms conflict"


class NodeChoice(NamedTuple):
    """A pod's nodeSelector and required node affinity, compiled."""

    labels: Mapping[str, str]
    terms: tuple[NodeTerm, ...] | None
    """None without required affinity. An empty tuple matches no node."""

    def matches(self, labels: Labels, name: str) -> bool:
        """Return whether it selects a node with these labels and this name."""
        for key, value in self.labels.items():
            if labels.get(key) != value:
                return False
        if self.terms is None:
            return True
        return any(term.matches(labels, name) for term in self.terms)

    @property
    def reads(self) -> Reads:
        """What `matches` reads of a node."""
        labels: dict[str, frozenset[str] | None] = {
            key: frozenset((value,)) for key, value in self.labels.items()
        }
        terms = self.terms or ()
        for requirement in chain.from_iterable(term.labels.requirements for term in terms):
            known = labels.get(requirement.key, _NO_VALUES)
            counts = requirement.operator in ("Gt", "Lt")
            labels[requirement.key] = (
                None if counts or known is None else known | requirement.values
            )
        names = frozenset(value for term in terms for _, _, value in term.fields)
        return Reads(labels, names)


def selecting(labels: object, terms: object, **more: object) -> PodSpec | None:
    """Return the spec of a pod that selects nodes by labels, and by required terms, if any.

    All are plain, as the API has them, also what *more* the spec has. None if they can't be read.
    """
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    affinity = {"nodeAffinity": required} if terms else None
    spec = {"nodeSelector": labels, "affinity": affinity, **more}
    pod = convert("Pod", {"metadata": {"name": "any"}, "spec": spec})
    return pod.spec if isinstance(pod, Pod) else None


def node_choice(spec: PodSpec) -> NodeChoice:
    """Compile a pod's nodeSelector and required node affinity."""
    required = spec.required_nodes
    return NodeChoice(
        labels=spec.node_selector or {},
        terms=compile_node_selector(required) if required is not None else None,
    )


def named_nodes(spec: PodSpec) -> frozenset[str] | None:
    """Return the nodes that the affinity terms name by metadata.name; None means any node.

    An empty set means that each term requires several names at once, so no node can match.
    """
    required = spec.required_nodes
    if required is None or not required.node_selector_terms:
        return None
    names: frozenset[str] = frozenset()
    for term in required.node_selector_terms:
        of_term: frozenset[str] | None = None
        for field in term.match_fields or ():
            if field.key == "metadata.name" and field.operator == "In":
                values = frozenset(field.values or ())
                of_term = values if of_term is None else of_term & values
        if of_term is None:
            return None
        names |= of_term
    return names
