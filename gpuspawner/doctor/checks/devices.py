"""Whether the device plugins report the GPUs that the nodes have."""

from collections.abc import Iterator, Mapping, Sequence

from gpuspawner.doctor.nodes import names, selected
from gpuspawner.gates.what_if import Tried
from gpuspawner.kube.quoting import count
from gpuspawner.messages.administrators import Finding, error, warning
from gpuspawner.offers.discovery import gpus
from gpuspawner.offers.vendors import GPU_LABELS
from gpuspawner.scheduling import ClusterState, NodeInfo
from gpuspawner.scheduling.device_claims import may_serve

Ill = Mapping[str, Sequence[NodeInfo]]
"""The nodes whose label (``key=value``) says that they have GPUs, but that have none to give."""


def ill(state: ClusterState) -> Ill:
    """Find the nodes without GPUs whose labels promise some."""
    found: dict[str, list[NodeInfo]] = {}
    for node in state.nodes.values():
        label = next((label for label in GPU_LABELS if node.labels.get(label)), None)
        if label and node.labels[label] != "false" and not any(gpus(node)):
            found.setdefault(f"{label}={node.labels[label]}", []).append(node)
    return dict(sorted(found.items()))


def check(found: Ill, state: ClusterState, tried: Sequence[Tried]) -> Iterator[Finding]:
    """Check the nodes' devices."""
    for label, nodes in found.items():
        smallest = [it for it in tried if it.server.smallest]
        hit = dict.fromkeys(
            it.server.offer for it in smallest if is_all_of(state, it, {label: nodes})
        )
        so = f", so nobody can start {' or '.join(hit)}" if hit else ""
        make = error if hit else warning
        yield make(
            "no-gpus-on-node",
            f"The label {label} says that {count(len(nodes))} ({names(nodes)}) should have GPUs, "
            f"but none is reported{so}.",
            "Check the GPU driver and the device plugin on them: "
            "kubectl get pods --all-namespaces --field-selector spec.nodeName=NODE.",
        )
    for resource, nodes in sorted(_unhealthy(state).items()):
        lost = sum(it.capacity[resource] - it.allocatable.get(resource, 0) for it in nodes)
        yield warning(
            "unhealthy-gpus",
            f"The device plugin reports unhealthy GPUs: {lost} × {resource} on "
            f"{count(len(nodes))} ({names(nodes)}).",
            "Look at the log of the device plugin on the node, and restart it or the node.",
        )


def is_all_of(state: ClusterState, tried: Tried, found: Ill) -> bool:
    """Whether the server selects nodes, and all of them are ill.

    If a DeviceClass serves its resource, they needn't be: nodes don't report what drivers serve.
    """
    nodes = selected(state, tried)
    sick = {node.name for its in found.values() for node in its}
    accelerator = tried.proposal.grant.accelerator if tried.proposal else None
    if accelerator is None or not nodes:
        return False
    is_served = state.known("DeviceClass") and may_serve(state, accelerator.resource)
    return not is_served and all(node.name in sick for node in nodes)


def _unhealthy(state: ClusterState) -> dict[str, list[NodeInfo]]:
    found: dict[str, list[NodeInfo]] = {}
    for node in state.nodes.values():
        for resource in gpus(node):
            if node.capacity.get(resource, 0) > node.allocatable.get(resource, 0):
                found.setdefault(resource, []).append(node)
    return found
