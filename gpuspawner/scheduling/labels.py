"""Selectors of labels, of nodes and of pods (affinity terms), compiled once and matched often.

Sources: apimachinery `labels/selector.go` and `LabelSelectorAsSelector`, component-helpers
`nodeaffinity/nodeaffinity.go` (v0.36.2), and `newAffinityTerm` in kube-scheduler's
`framework/types.go` (v1.36.2).
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from gpuspawner.kube.meta import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorTerm,
)
from gpuspawner.kube.pods import PodAffinity, PodAffinityTerm

Labels = Mapping[str, str]

NO_LABELS: Labels = {}

_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_KEY = re.compile(
    r"(?:(?=[^/]{1,253}/)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_INT = re.compile(r"[+-]?[0-9]{1,40}")


class SelectorError(ValueError):
    """A selector that the scheduler can't use."""


class Requirement(NamedTuple):
    """One condition on labels."""

    key: str
    operator: str
    values: frozenset[str]
    number: int = 0
    """The value for Gt and Lt."""

    def matches(self, labels: Labels) -> bool:
        """Return whether the labels meet it."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        number = None if value is None else int64(value)
        if number is None:
            return False
        return number > self.number if self.operator == "Gt" else number < self.number


class Selector(NamedTuple):
    """Requirements that must all match. Without requirements, it matches everything."""

    requirements: tuple[Requirement, ...]
    nothing: bool = False

    def matches(self, labels: Labels) -> bool:
        """Return whether it selects the labels."""
        if self.nothing:
            return False
        for requirement in self.requirements:  # noqa: SIM110 (all() costs twice the time)
            if not requirement.matches(labels):
                return False
        return True

    @property
    def empty(self) -> bool:
        """Whether it selects everything."""
        return not self.requirements and not self.nothing


NOTHING = Selector((), nothing=True)
EVERYTHING = Selector(())


def compile_selector(selector: LabelSelector | None) -> Selector:
    """Compile a label selector; None matches nothing, an empty selector matches everything.

    Raises:
        SelectorError: the API server would refuse an operator, a key or a value.
    """
    if selector is None:
        return NOTHING
    requirements = [
        _requirement(key, "In", (value,)) for key, value in (selector.match_labels or {}).items()
    ]
    return Selector((*requirements, *_compiled("label", selector.match_expressions, *_OPERATORS)))


def with_label_keys(
    selector: Selector, keys: Iterable[str] | None, operator: str, labels: Labels
) -> Selector:
    """Add to a selector what the API server will add for a new pod's labels.

    The keys are those of `matchLabelKeys`, with In, or of `mismatchLabelKeys`, with NotIn.
    """
    known = [key for key in keys or () if key in labels]
    added = tuple(Requirement(key, operator, frozenset((labels[key],))) for key in known)
    return selector._replace(requirements=selector.requirements + added) if added else selector


class NodeTerm(NamedTuple):
    """One term of a node selector."""

    labels: Selector
    fields: tuple[tuple[str, bool, str], ...]
    """For each field: its name, whether it must be equal, and the value."""

    def matches(self, labels: Labels, name: str) -> bool:
        """Return whether it selects a node with these labels and this name."""
        for field, equal, value in self.fields:
            if ((name if field == "metadata.name" else "") == value) is not equal:
                return False
        return self.labels.matches(labels)


def compile_node_selector(selector: NodeSelector) -> tuple[NodeTerm, ...]:
    """Compile the terms of a node selector; a node needs to match one of them.

    Empty and invalid terms are omitted, because they never match.
    """
    terms = []
    for term in selector.node_selector_terms or ():
        if not term.match_expressions and not term.match_fields:
            continue
        with suppress(SelectorError):
            terms.append(_node_term(term))
    return tuple(terms)


class PodTerm(NamedTuple):
    """One required term: which pods it matches, in which namespaces, over which topology key."""

    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector
    topology_key: str

    def matches(self, namespace: str, labels: Labels, namespace_labels: Labels) -> bool:
        """Return whether the term matches a pod with these labels in this namespace."""
        if namespace not in self.namespaces and not self.namespace_selector.matches(
            namespace_labels
        ):
            return False
        return self.selector.matches(labels)


def required_terms(
    affinity: PodAffinity | None, namespace: str, labels: Labels = NO_LABELS
) -> tuple[PodTerm, ...]:
    """Compile the required terms of a pod's affinity or anti-affinity.

    Args:
        affinity: `spec.affinity.podAffinity` or `.podAntiAffinity`.
        namespace: the pod's namespace.
        labels: the labels of a pod that doesn't exist yet. The API server will add those of its
            `matchLabelKeys` and `mismatchLabelKeys` to the selectors (`mutatePodAffinity` in
            pkg/registry/core/pod/strategy.go). Adding them twice does no harm.

    Raises:
        SelectorError: a selector that the scheduler can't use.
    """
    if affinity is None or not affinity.required:
        return ()
    return tuple(_pod_term(term, namespace, labels) for term in affinity.required)


def int64(text: str) -> int | None:
    """Parse a 64-bit number like Go's `strconv.ParseInt`; None if the text isn't one."""
    if not _INT.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _node_term(term: NodeSelectorTerm) -> NodeTerm:
    requirements = _compiled("node", term.match_expressions, *_OPERATORS, "Gt", "Lt")
    fields = []
    for field in term.match_fields or ():
        values = field.values or ()
        if field.operator not in ("In", "NotIn") or len(values) != 1:
            raise SelectorError("matchFields takes In or NotIn with one value")
        fields.append((field.key, field.operator == "In", values[0]))
    return NodeTerm(Selector(requirements), tuple(fields))


def _pod_term(term: PodAffinityTerm, namespace: str, labels: Labels) -> PodTerm:
    if term.namespaces or term.namespace_selector is not None:
        namespaces = frozenset(term.namespaces or ())
    else:
        namespaces = frozenset((namespace,))
    selector = compile_selector(term.label_selector)
    selector = with_label_keys(selector, term.match_label_keys, "In", labels)
    selector = with_label_keys(selector, term.mismatch_label_keys, "NotIn", labels)
    namespace_selector = compile_selector(term.namespace_selector)
    return PodTerm(selector, namespaces, namespace_selector, term.topology_key)


def _compiled(
    kind: str, expressions: Iterable[LabelSelectorRequirement] | None, *operators: str
) -> tuple[Requirement, ...]:
    requirements = []
    for it in expressions or ():
        if it.operator not in operators:
            raise SelectorError(f"{it.operator!r} is no operator of a {kind} selector")
        requirements.append(_requirement(it.key, it.operator, it.values or ()))
    return tuple(requirements)


def _requirement(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    if not _KEY.fullmatch(key):
        raise SelectorError(f"{key[:80]!r} is no label key")
    if operator in ("In", "NotIn") and not values:
        raise SelectorError(f"{operator} needs a value")
    if operator in ("Exists", "DoesNotExist") and values:
        raise SelectorError(f"{operator} takes no value")
    if not all(map(_VALUE.fullmatch, values)):
        raise SelectorError(f"a value for {key!r} is no label value")
    number = 0
    if operator in ("Gt", "Lt"):
        parsed = int64(values[0]) if len(values) == 1 else None
        if parsed is None:
            raise SelectorError(f"{operator} takes one number")
        number = parsed
    return Requirement(key, operator, frozenset(values), number)
