"""The events that a kubelet writes about a pod."""

from datetime import UTC, datetime

from localcluster.agent.api import Api, ApiError, Object
from localcluster.agent.status import timestamp


async def record(api: Api, pod: Object, reason: str, message: str, kind: str = "Normal") -> None:
    """Write one event about a pod; ``kind`` is Normal or Warning.

    It always has a lastTimestamp: KubeSpawner sorts events by it, and one without
    breaks the progress of every server in the namespace.
    """
    metadata, now = pod["metadata"], timestamp(datetime.now(UTC))
    namespace = metadata["namespace"]
    event = {
        "metadata": {"generateName": f"{metadata['name'][:200]}.", "namespace": namespace},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": metadata["name"],
            "namespace": namespace,
            "uid": metadata["uid"],
        },
        "type": kind,
        "reason": reason,
        "message": message,
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": "kubelet", "host": pod["spec"]["nodeName"]},
    }
    try:
        await api.create(f"/api/v1/namespaces/{namespace}/events", event)
    except ApiError as error:
        # A namespace that is going away takes no new events.
        if error.status not in (403, 404):
            raise
