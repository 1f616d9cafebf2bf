"""The required terms of pod affinity and anti-affinity, compiled once and matched often.

Source: `newAffinityTerm` in kube-scheduler's `framework/types.go` (v1.36.2).
"""

from typing import NamedTuple

from gpuspawner.kube.pods import PodAffinity, PodAffinityTerm

from .labels import Labels, Selector, compile_selector, with_label_keys

NO_LABELS: Labels = {}


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


def _pod_term(term: PodAffinityTerm, namespace: str, labels: Labels) -> PodTerm:
    if term.namespaces or term.namespace_selector is not None:
        namespaces = frozenset(term.namespaces or ())
    else:
        namespaces = frozenset((namespace,))
    same = with_label_keys(
        compile_selector(term.label_selector), term.match_label_keys, "In", labels
    )
    return PodTerm(
        selector=with_label_keys(same, term.mismatch_label_keys, "NotIn", labels),
        namespaces=namespaces,
        namespace_selector=compile_selector(term.namespace_selector),
        topology_key=term.topology_key,
    )
