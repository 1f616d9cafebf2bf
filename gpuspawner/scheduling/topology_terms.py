"""The `allowedTopologies` of a storage class: where it may provision volumes.

Source: `MatchTopologySelectorTerms` in pkg/apis/core/v1/helper (v1.36.2).
"""

from collections.abc import Iterable

from gpuspawner.kube.meta import LabelSelector
from gpuspawner.kube.storage import TopologySelectorTerm

from .labels import Labels, Selector, SelectorError, compile_selector


def topology_terms(terms: Iterable[TopologySelectorTerm] | None) -> tuple[Selector, ...] | None:
    """Compile terms; one of them must match. None means no terms, so everything matches."""
    if not terms:
        return None
    compiled = []
    for term in terms:
        if not term.match_label_expressions:
            continue
        expressions = [
            type(expression)(key=expression.key, operator="In", values=expression.values)
            for expression in term.match_label_expressions
        ]
        try:
            compiled.append(compile_selector(LabelSelector(match_expressions=expressions)))
        except SelectorError:
            continue
    return tuple(compiled)


def matches_any(terms: tuple[Selector, ...] | None, labels: Labels) -> bool:
    """Return whether the class may provision a volume for a node with these labels."""
    return terms is None or any(term.matches(labels) for term in terms)
