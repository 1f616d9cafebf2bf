"""The events that a kubelet writes about a pod."""

from localcluster.agent.api import Api, ApiError, Object
from localcluster.events import event_about


async def record(api: Api, pod: Object, reason: str, message: str, kind: str = "Normal") -> None:
    """Write one event about a pod; ``kind`` is Normal or Warning."""
    source = {"component": "kubelet", "host": pod["spec"]["nodeName"]}
    event = event_about("Pod", pod["metadata"], source, reason, message, kind)
    try:
        await api.create(f"/api/v1/namespaces/{pod['metadata']['namespace']}/events", event)
    except ApiError as error:
        # A namespace that is going away takes no new events.
        if error.status not in (403, 404):
            raise
