"""Predicts what kube-scheduler would do with a pod. Pure functions: no hub, no I/O.

    state = ClusterState.from_objects(nodes=nodes, pods=pods)
    verdict = evaluate(state, pod)

`nodes` and `pods` are lists of plain API dicts, such as the `items` of `kubectl get -o json`.
"""

from .evaluate import evaluate, explain
from .failures import (
    ClaimInUse,
    Cordoned,
    DiskInUse,
    DriverMissing,
    Excluded,
    Failure,
    Failures,
    Insufficient,
    NoStorage,
    NotNear,
    NoTopology,
    NoVolume,
    OtherNode,
    OtherZone,
    PortTaken,
    Rejected,
    Repelled,
    TooManyVolumes,
    TooNear,
    Uneven,
    Unselected,
    Untolerated,
    VolumeElsewhere,
    VolumeGone,
)
from .node_info import NodeInfo, PodInfo
from .rules import Rules
from .state import ClusterState
from .verdict import Outcome, Unknown, Verdict, Why

__all__ = [
    "ClaimInUse",
    "ClusterState",
    "Cordoned",
    "DiskInUse",
    "DriverMissing",
    "Excluded",
    "Failure",
    "Failures",
    "Insufficient",
    "NoStorage",
    "NoTopology",
    "NoVolume",
    "NodeInfo",
    "NotNear",
    "OtherNode",
    "OtherZone",
    "Outcome",
    "PodInfo",
    "PortTaken",
    "Rejected",
    "Repelled",
    "Rules",
    "TooManyVolumes",
    "TooNear",
    "Uneven",
    "Unknown",
    "Unselected",
    "Untolerated",
    "Verdict",
    "VolumeElsewhere",
    "VolumeGone",
    "Why",
    "evaluate",
    "explain",
]
