"""Whether the queue of Kueue in which servers wait exists, and can admit them."""

from collections.abc import Iterator

from gpuspawner.cluster.kueue_objects import DEFAULT_QUEUE
from gpuspawner.doctor.hub import Hub
from gpuspawner.gates.what_if import NOBODY
from gpuspawner.kube.kueue import LocalQueue
from gpuspawner.kube.quoting import did_you_mean, one_line
from gpuspawner.kueue.queues import quota_of
from gpuspawner.messages.administrators import Finding, error, fine, warning
from gpuspawner.preflight.kueue import Closed, WhyClosed

_PLACE = "GPUSpawner.kueue_queue"


def check(hub: Hub) -> Iterator[Finding]:
    """Check the LocalQueue that servers name, unless only a user would tell its namespace."""
    objects, namespace, configured = hub.view.queues, hub.spawner.namespace, hub.spawner.kueue_queue
    if _is_made_up(hub) or not objects.knows_quotas or configured == "":
        return
    queue = configured or DEFAULT_QUEUE
    found = quota_of(objects, queue, namespace)
    if not isinstance(found, Closed):
        text = f"Servers wait in Kueue's LocalQueue {queue}, for the quota of {found.metadata.name}"
        yield fine("kueue-queue", f"{text}.")
    elif found.why is not WhyClosed.NO_QUEUE:
        yield _closed(queue, found)
    elif configured:
        names = objects.names_of_queues(namespace)
        yield error(
            "kueue-queue",
            f"{_PLACE} names the LocalQueue {queue}, but the namespace {namespace} has none of "
            f"this name{did_you_mean(queue, names)}. If Kueue manages the namespace, no server "
            "starts.",
            f"Create it, or correct {_PLACE}.",
        )


def are_unseen(hub: Hub) -> bool:
    """Whether servers may wait in queues of namespaces that only a user would tell."""
    configured, objects = hub.spawner.kueue_queue, hub.view.queues
    has_default = any(name == DEFAULT_QUEUE for _, name in objects.keys(LocalQueue.__name__))
    return _is_made_up(hub) and bool(has_default if configured is None else configured)


def _is_made_up(hub: Hub) -> bool:
    return hub.spawner.enable_user_namespaces and hub.owner == NOBODY


def _closed(queue: str, found: Closed) -> Finding:
    if found.why is WhyClosed.INACTIVE:
        return warning(
            "kueue-stopped",
            f"The ClusterQueue of the LocalQueue {queue} isn't active, so no server starts. Kueue "
            f"says: {one_line(found.details)}",
            "Create what it lacks, or correct the ClusterQueue.",
        )
    if found.why is WhyClosed.STOPPED:
        return warning(
            "kueue-stopped",
            f"The LocalQueue {queue} or its ClusterQueue has a stopPolicy, so no server starts.",
            "Set its stopPolicy to None when servers may start again.",
        )
    return error(
        "kueue-queue",
        f"The ClusterQueue of the LocalQueue {queue} doesn't exist, so no server starts.",
        "Create it, or correct the LocalQueue.",
    )
