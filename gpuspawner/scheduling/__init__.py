"""What kube-scheduler would do with a pod, without asking it: pure, no hub, no I/O.

    state = ClusterState.from_objects(nodes=nodes, pods=pods)
    verdict = evaluate(state, pod)

`nodes` and `pods` are lists of plain API dicts, such as the `items` of `kubectl get -o json`.
"""

from .evaluate import evaluate, explain, fits_on
from .failures import Failure, Failures
from .node_info import NodeInfo, PodInfo
from .rules import Rules
from .state import ClusterState
from .unknowns import Unknown, Why
from .verdict import Outcome, Verdict

__all__ = [
    "ClusterState",
    "Failure",
    "Failures",
    "NodeInfo",
    "Outcome",
    "PodInfo",
    "Rules",
    "Unknown",
    "Verdict",
    "Why",
    "evaluate",
    "explain",
    "fits_on",
]
