"""Which nodes give containers their NVIDIA GPUs only with a RuntimeClass: those of k3s and RKE2.

Both find NVIDIA's runtime and have a RuntimeClass for it, but containers run with runc unless
``--default-runtime`` says otherwise (k3s-io/docs, docs/advanced.md).
"""

import re
from collections.abc import Iterable

from gpuspawner.offers.vendors import INSTANCE_TYPE
from gpuspawner.scheduling.node_info import NodeInfo

NAME = "nvidia"
_ARGUMENTS = ("k3s.io/node-args", "rke2.io/node-args")
"""Annotations with the arguments of the node's k3s or RKE2, those of its file among them."""
_NVIDIA_BY_DEFAULT = re.compile(rf"--default-runtime\W+{NAME}\b")


def needed(resources: Iterable[str], nodes: Iterable[NodeInfo]) -> bool:
    """Whether a container needs the class for one of these resources on one of these nodes."""
    return any(it.startswith("nvidia.com/") for it in resources) and any(map(_needs, nodes))


def _needs(node: NodeInfo) -> bool:
    notes = (node.node.metadata.annotations if node.node else None) or {}
    given = next((notes[it] for it in _ARGUMENTS if it in notes), None)
    if given is None:
        return node.labels.get(INSTANCE_TYPE) in ("k3s", "rke2")
    return _NVIDIA_BY_DEFAULT.search(given) is None
