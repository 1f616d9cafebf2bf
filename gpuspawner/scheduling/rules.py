"""Rules that depend on the version of kube-scheduler, not on that of the API server.

Patch releases and feature gates differ within a version, and nobody can see them from outside. A
verdict is certain only if it is the same for each reading of the pod (`readings`).
"""

import re
from collections.abc import Callable, Iterable
from enum import Enum

import msgspec
from msgspec.structs import replace

from gpuspawner.kube.meta import LabelSelector
from gpuspawner.kube.pods import Pod, PodAffinityTerm

DEFAULT_SCHEDULER = "default-scheduler"

_VERSION = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4})?.*|[+-].*)?", re.DOTALL)


def minor_version(version: str) -> int | None:
    """Return the minor version of a text such as "v1.36.2"; None if it isn't such a version."""
    release = _release(version)
    return release and release[0]


def _release(version: str) -> tuple[int, int] | None:
    """Return the minor version and the patch release; a text without the latter means the first."""
    match = _VERSION.fullmatch(version.strip())
    return (int(match[2]), int(match[3] or 0)) if match and match[1] == "1" else None


class Resize(Enum):
    """How the resources of a pod count during an in-place resize."""

    SPEC = "what its spec asks for"
    MAX_PER_CONTAINER = "per container the most of spec, status and allocation"
    MAX_OF_SUMS = "the most of the sums of spec, status and allocation"


class Rules(msgspec.Struct, frozen=True):
    """Rules that differ between versions of kube-scheduler."""

    minor: int
    """The minor version, of 1.x."""
    resize: Resize
    pod_level_resources: bool
    """Whether `spec.resources` of a pod counts (on since 1.34)."""
    pod_level_resize: bool
    """Whether `status.resources` of a pod counts (on since 1.36)."""
    sidecar_ports: bool
    """Whether host ports of sidecars count (since 1.33.6)."""
    missing_drivers_by_gate: bool
    """Whether the gate VolumeLimitScaling of the scheduler, which nobody sees, is off by default
    (before 1.37)."""

    schedulers: frozenset[str] = frozenset({DEFAULT_SCHEDULER})
    """Names of schedulers that use the default filters."""

    @classmethod
    def of_version(cls, version: str, schedulers: Iterable[str] = ()) -> "Rules":
        """Return the rules of a kube-scheduler version.

        Args:
            version: such as "v1.36.2". If it can't be parsed, the newest rules apply.
            schedulers: further schedulers with the default filters, such as the user-scheduler of
                Zero to JupyterHub, which changes only the scores.
        """
        minor, patch = _release(version) or (NEWEST_MINOR, 0)
        if minor <= 32:
            resize = Resize.SPEC
        elif minor <= 36:
            resize = Resize.MAX_PER_CONTAINER
        else:
            resize = Resize.MAX_OF_SUMS
        return cls(
            minor=minor,
            resize=resize,
            pod_level_resources=minor >= 34,
            pod_level_resize=minor >= 36,
            sidecar_ports=(minor, patch) >= (33, 6),
            missing_drivers_by_gate=minor < 37,
            schedulers=frozenset({DEFAULT_SCHEDULER, *schedulers}),
        )


NEWEST_MINOR = 37
"""The newest minor version that this module implements."""

DEFAULT_RULES = Rules.of_version("v1.36")
"""The rules of the version from which the message texts are taken."""


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
