"""Writes into a pod in which of Kueue's queues it waits."""

from collections.abc import Mapping
from typing import Any

from gpuspawner.kueue.pods import PRIORITY, QUEUE


def queued(pod: Mapping[str, Any], queue: str, priority_class: str = "") -> dict[str, Any]:
    """Return a pod with a queue and a priority; those that it has already stay.

    Args:
        pod: As the API writes it.
        queue: A LocalQueue of the pod's namespace; "" for none, unless the pod names one.
        priority_class: A WorkloadPriorityClass; "" for the pod's own priority.
    """
    metadata = pod.get("metadata") or {}
    labels = dict(metadata.get("labels") or {})
    if queue:
        labels.setdefault(QUEUE, queue)
    if QUEUE not in labels:
        return dict(pod)
    if priority_class:
        labels.setdefault(PRIORITY, priority_class)
    return {**pod, "metadata": {**metadata, "labels": labels}}
