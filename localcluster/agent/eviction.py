"""What a kubelet says when it evicts a pod from a node. No input or output.

pkg/kubelet/eviction/helpers.go and eviction_manager.go (v1.36.2).
"""

from collections.abc import Iterable
from datetime import UTC, datetime

from gpuspawner.kube.quantity import parse_quantity
from localcluster.agent.api import Object
from localcluster.agent.pressure import Shortage
from localcluster.agent.status import timestamp

REASON = "Evicted"
#: What the kubelet leaves a pod to end itself (immediateEvictionGracePeriodSeconds).
GRACE = 1.0


def message(pod: Object, shortage: Shortage, use: str, running: Iterable[str]) -> str:
    """Return why a pod is evicted.

    Args:
        pod: the pod.
        shortage: what the node is short of.
        use: how much of it each of the pod's containers uses, or "" to say nothing of them.
        running: the names of the containers that run.
    """
    pressure = shortage.pressure
    text = (
        f"The node was low on resource: {pressure.resource}. "
        f"Threshold quantity: {pressure.threshold}, available: {shortage.left}. "
    )
    names = set(running)
    for container in pod["spec"]["containers"]:
        requests = container.get("resources", {}).get("requests", {})
        request = requests.get(pressure.resource, "0")
        is_over = use and parse_quantity(use) > parse_quantity(request)
        if container["name"] in names and is_over:
            text += (
                f"Container {container['name']} was using {use}, request is {request}, "
                f"has larger consumption of {pressure.resource}. "
            )
    return text


def end(text: str) -> Object:
    """Return what the status of an evicted pod says above all."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "TerminationByKubelet",
        "message": text,
        "lastTransitionTime": timestamp(datetime.now(UTC)),
    }
    return {"phase": "Failed", "reason": REASON, "message": text, "condition": condition}
