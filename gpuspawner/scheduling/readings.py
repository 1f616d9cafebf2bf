"""How the scheduler may read a pod, if its version alone doesn't tell.

Patch releases and feature gates differ within a version, and nobody can see them from outside. A
verdict is certain only if it is the same for each reading.
"""

from collections.abc import Callable

from msgspec.structs import replace

from gpuspawner.kube.meta import LabelSelector
from gpuspawner.kube.pods import Pod, PodAffinityTerm

from .rules import Rules


def readings(pod: Pod, rules: Rules) -> list[tuple[str, Pod]]:
    """Return the pod as each scheduler of these rules may read it, with the field that differs.

    The first is the usual one, and nearly always the only one.
    """
    found = [("", as_version_reads(pod, rules))]
    if 34 <= rules.minor <= 36:  # until a patch release has the fix (kubernetes/kubernetes#141526)
        found += _others(found, "namespaceSelector", _in_all_namespaces)
    return found + _others(found, "Gt or Lt of a toleration", _without_comparisons)


def as_version_reads(pod: Pod, rules: Rules) -> Pod:
    """Return the pod as schedulers of a version read it: since 1.35, tolerations may compare."""
    return pod if rules.minor >= 35 else _without_comparisons(pod)


def _others(
    found: list[tuple[str, Pod]], field: str, reread: Callable[[Pod], Pod]
) -> list[tuple[str, Pod]]:
    return [(field, other) for _, pod in found if (other := reread(pod)) is not pod]


def _without_comparisons(pod: Pod) -> Pod:
    """Return a pod without the tolerations that compare numbers: they match no taint."""
    given = pod.spec.tolerations or []
    kept = [it for it in given if it.operator not in ("Gt", "Lt")]
    if len(kept) == len(given):
        return pod
    return pod.with_spec(tolerations=kept)


def _in_all_namespaces(pod: Pod) -> Pod:
    """Return a pod whose terms select all namespaces if a namespace without labels would do.

    The scheduler adds the namespaces that a selector matches, but keeps the selector, and then asks
    it about no labels (`mergeAffinityTermNamespacesIfNotEmpty` in interpodaffinity/plugin.go).
    """
    affinity = pod.spec.affinity
    if affinity is None or not (affinity.pod_affinity or affinity.pod_anti_affinity):
        return pod
    near, away = (
        it and replace(it, required=it.required and [_widened(term) for term in it.required])
        for it in (affinity.pod_affinity, affinity.pod_anti_affinity)
    )
    wide = replace(affinity, pod_affinity=near, pod_anti_affinity=away)
    return pod if wide == affinity else pod.with_spec(affinity=wide)


def _widened(term: PodAffinityTerm) -> PodAffinityTerm:
    selector = term.namespace_selector or LabelSelector()
    operators = {it.operator for it in selector.match_expressions or ()}
    if selector.match_labels or not operators or operators - {"NotIn", "DoesNotExist"}:
        return term
    return replace(term, namespace_selector=LabelSelector())
