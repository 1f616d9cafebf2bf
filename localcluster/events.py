"""The objects of events, as Kubernetes' components write them."""

from collections.abc import Mapping
from datetime import UTC, datetime

from localcluster.client import Object


def event_about(
    about: str,
    metadata: Object,
    source: Mapping[str, str],
    reason: str,
    message: str,
    kind: str = "Normal",
) -> Object:
    """Return an event that says that something happened once, now.

    It has a lastTimestamp: KubeSpawner sorts events by it, and one without breaks the progress of
    every server in the namespace.

    Args:
        about: the kind of the object that it is about, such as ``Pod``.
        metadata: the metadata of that object.
        source: the writer: its component, and the host if it has one.
        reason: one word.
        message: a sentence.
        kind: Normal or Warning.
    """
    namespace, name = metadata["namespace"], metadata["name"]
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "metadata": {"generateName": f"{name[:200]}.", "namespace": namespace},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": about,
            "name": name,
            "namespace": namespace,
            "uid": metadata["uid"],
        },
        "type": kind,
        "reason": reason,
        "message": message,
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": dict(source),
        "reportingComponent": source["component"],
    }
