"""Lets servers wait in a queue of Kueue, if there is one for them."""

from collections.abc import Mapping
from typing import Any

from gpuspawner.cluster.kueue_objects import DEFAULT_QUEUE, KueueObjects
from gpuspawner.compat import pods
from gpuspawner.kube.kueue import PRIORITY, QUEUE, LocalQueue
from gpuspawner.kube.objects import Manifest
from gpuspawner.start.host import Host
from gpuspawner.traits.trait_types import setting


def in_queue(spawner: Host, queues: KueueObjects, pod: Manifest) -> Manifest:
    """Return the pod with the queue in which it waits; unchanged without one."""
    return queued(pod, queue_for(spawner, queues), setting(spawner, "kueue_priority_class"))


def model_in_queue(spawner: Host, queues: KueueObjects, pod: Any) -> Any:
    """Return KubeSpawner's pod with the queue in which it waits; itself if there is none."""
    if not (queue_for(spawner, queues) or setting(spawner, "kueue_priority_class")):
        return pod
    before = pods.plain(pod)
    return pods.changed(pod, before, in_queue(spawner, queues, before))


def queue_for(spawner: Host, queues: KueueObjects) -> str:
    """Return the name of the LocalQueue for a server's pod; "" for none."""
    named: str | None = setting(spawner, "kueue_queue")
    if named is not None:
        return named
    default = queues.find(LocalQueue, DEFAULT_QUEUE, spawner.namespace)
    return DEFAULT_QUEUE if default else ""


# Writes into a pod in which of Kueue's queues it waits.


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
