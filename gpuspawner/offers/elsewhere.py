"""Keeps a pod off nodes, in the terms of their label ``kubernetes.io/hostname``.

Karpenter ignores pods with ``matchFields``, which would name the nodes themselves.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from gpuspawner.offers import node_affinity
from gpuspawner.offers.manifest import require
from gpuspawner.offers.node_affinity import TermRequirement, Terms
from gpuspawner.offers.vendors import HOSTNAME

_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_MOST = 100
"""The highest weight of a preference."""


def off(pod: Mapping[str, Any], hostnames: Iterable[str]) -> dict[str, Any]:
    """Return a pod that no scheduler puts on these nodes."""
    spec = dict(pod["spec"])
    require(spec, _none_of(hostnames))
    return {**pod, "spec": spec}


def rather_off(pod: Mapping[str, Any], hostnames: Iterable[str]) -> dict[str, Any]:
    """Return a pod that schedulers put on these nodes only if there are no others."""
    spec = pod["spec"]
    affinity = spec.get("affinity") or {}
    node = affinity.get("nodeAffinity") or {}
    [preference] = node_affinity.write(_none_of(hostnames))
    preferred = [*(node.get(_PREFERRED) or ()), {"weight": _MOST, "preference": preference}]
    affinity = {**affinity, "nodeAffinity": {**node, _PREFERRED: preferred}}
    return {**pod, "spec": {**spec, "affinity": affinity}}


def _none_of(hostnames: Iterable[str]) -> Terms:
    return ((TermRequirement("matchExpressions", HOSTNAME, "NotIn", tuple(hostnames)),),)
