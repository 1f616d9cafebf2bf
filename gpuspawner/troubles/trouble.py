"""What can go wrong between a pod's creation and its server's start, as facts."""

from datetime import datetime
from enum import StrEnum

import msgspec


class Kind(StrEnum):
    """What went wrong.

    A new one has its reader in this room, its sentence and way out in `messages.causes`, and a row
    in docs/reference/failed-starts.md. The beginning of its value says whether it is about an image
    (`IMAGE`). Ask too whether it belongs in `VAGUE`, `giving_up`, `avoided_nodes.BROKEN`, `ending`
    or `messages.endings`.
    """

    # The image.
    IMAGE_MISSING = "image-missing"
    """The registry has no such image or tag."""
    IMAGE_FORBIDDEN = "image-forbidden"
    """The registry lets nobody pull it without other credentials, or has no such repository."""
    IMAGE_NAME = "image-name"
    """No valid name of an image."""
    IMAGE_PLATFORM = "image-platform"
    """It isn't made for the node's kind of processor."""
    IMAGE_NEVER_PULLED = "image-never-pulled"
    """It may not be pulled, and the node doesn't have it."""
    IMAGE_SIGNATURE = "image-signature"
    REGISTRY_UNREACHABLE = "registry-unreachable"
    REGISTRY_LIMIT = "registry-limit"
    """The registry, or the kubelet, lets nobody pull so much."""
    DISK_FULL = "disk-full"
    """The node's disk is full."""
    PULL_FAILED = "pull-failed"
    PULL_BACK_OFF = "pull-back-off"
    """The kubelet will try again; the cause is told by another fact."""
    PULL_SECRET = "pull-secret"  # noqa: S105, no password
    """A secret with credentials for a registry can't be read."""

    # Volumes and network.
    VOLUME_IN_USE = "volume-in-use"
    """It is attached to another node."""
    VOLUME_ATTACH = "volume-attach"
    VOLUME_MOUNT = "volume-mount"
    VOLUME_WAITS = "volume-waits"
    """It isn't there yet; the cause is told by another fact, or by none."""
    VOLUME_LIMIT = "volume-limit"
    """The node can't have more volumes."""
    CLAIM_MISSING = "claim-missing"
    NETWORK = "network"
    """The pod gets no network, no address for example."""
    RUNTIME = "runtime"
    """The node's container runtime doesn't know the pod's RuntimeClass."""
    NODE_SOFTWARE = "node-software"
    """The node lacks something that its container runtime needs."""
    SANDBOX = "sandbox"
    """The pod's sandbox can't be made, for another reason."""

    # The container's configuration.
    SECRET_MISSING = "secret-missing"  # noqa: S105, no password
    CONFIG_MAP_MISSING = "config-map-missing"
    KEY_MISSING = "key-missing"
    """A Secret or a ConfigMap lacks a key."""
    RUNS_AS_ROOT = "runs-as-root"
    """The image runs as root, or may, and the pod forbids it."""
    CONTAINER_CONFIG = "container-config"

    # The node refuses the pod.
    DEVICE_TAKEN = "device-taken"
    """The node has no such device left, though the scheduler counted one."""
    DEVICE_BROKEN = "device-broken"
    """The node's devices aren't healthy, or their plugin fails."""
    ONE_SHARE = "one-share"
    """The node shares its GPUs, and gives a container only one share."""
    DEVICES_UNPREPARED = "devices-unprepared"
    """Claimed devices (dynamic resource allocation) can't be prepared."""
    GPUS_MISSING = "gpus-missing"
    """The server's container sees fewer GPUs than it was granted."""
    NODE_FULL = "node-full"
    NODE_CHANGED = "node-changed"
    """The node's labels, taints or ports don't fit the pod any more."""
    TOPOLOGY = "topology"
    """Devices and processors aren't free close enough to each other."""
    NODE_REFUSED = "node-refused"

    # The pod is ended.
    NODE_PRESSURE = "node-pressure"
    """The node was short of memory, disk or process ids."""
    OVER_LIMIT = "over-limit"
    """A volume or a container used more disk space than it is allowed."""
    EVICTED = "evicted"
    PREEMPTED = "preempted"
    """It had to make room for a pod with a higher priority."""
    TAINTED = "tainted"
    """The node, or a device, got a taint that the pod doesn't tolerate."""
    NODE_SHUTDOWN = "node-shutdown"
    NODE_LOST = "node-lost"
    """The node isn't ready, or gone."""
    DEADLINE = "deadline"
    DELETED = "deleted"
    STOPPED = "stopped"
    """Somebody else than the owner stopped the server, by a page of ours."""
    HUB_RESTARTED = "hub-restarted"
    """The hub ended while it was starting the server."""
    FAILED = "failed"
    """Kubernetes ended it, for a reason that isn't one of these."""

    # The queue (Kueue).
    QUEUE_PREEMPTED = "queue-preempted"
    """The queue's quota was needed for a pod with a higher priority."""
    QUEUE_RECLAIMED = "queue-reclaimed"
    """The quota was borrowed, and its owner wanted it back."""
    QUEUE_STOPPED = "queue-stopped"
    """An administrator stopped the queue, with the pods in it."""
    QUEUE_EVICTED = "queue-evicted"
    """The queue has ended it, for another reason."""
    QUEUE_NEVER = "queue-never"
    """The queue could never give so much."""
    QUEUE_SILENT = "queue-silent"
    """The queue takes no notice of it."""

    # The container.
    NO_SUCH_PROGRAM = "no-such-program"
    """The image has no such program, or it can't be executed."""
    GPU_DRIVER = "gpu-driver"
    """NVIDIA's container runtime fails on this node, or the driver doesn't fit the image."""
    CONTAINER_CREATION = "container-creation"
    OUT_OF_MEMORY = "out-of-memory"
    CRASHED = "crashed"
    ENDED = "ended"
    """The server ended by itself, without an error."""
    CRASH_LOOP = "crash-loop"
    """The kubelet will start it again; the cause is told by another fact."""
    POST_START_HOOK = "post-start-hook"
    NOT_READY = "not-ready"
    """The readiness or startup probe fails."""
    NOT_ALIVE = "not-alive"
    """The liveness probe fails, so the kubelet restarts the container."""

    UNSCHEDULABLE = "unschedulable"
    UNKNOWN = "unknown"
    """A warning in words that aren't known."""


VAGUE = frozenset(
    {Kind.PULL_BACK_OFF, Kind.CRASH_LOOP, Kind.VOLUME_WAITS, Kind.PULL_FAILED, Kind.QUEUE_SILENT}
)
"""Kinds that say little beside another fact about the same, or at once."""

IMAGE = frozenset(it for it in Kind if it.value.startswith(("image-", "registry-", "pull-")))
"""Kinds that are about an image."""


class About(msgspec.Struct, frozen=True, order=True):
    """What a trouble is about; each part is "" if it isn't said.

    Attributes:
        volume: As the text names it: a volume of the pod, or a PersistentVolume.
        resource: A device or another resource.
        name: A Secret, a ConfigMap, a RuntimeClass, a key or a device.
        granted, visible: How many GPUs a container was granted, and sees; both 0 if it isn't said.
    """

    container: str = ""
    image: str = ""
    volume: str = ""
    claim: str = ""
    resource: str = ""
    name: str = ""
    granted: int = 0
    visible: int = 0


class Exit(msgspec.Struct, frozen=True, order=True):
    """How a container ended.

    Attributes:
        reason: `Error` or `OOMKilled`, for example.
        restarts: How often it has been started again.
        last_words: What it left as its termination message: often its log's last lines.
    """

    code: int
    signal: int = 0
    reason: str = ""
    restarts: int = 0
    last_words: str = ""


class Trouble(msgspec.Struct, frozen=True):
    """One thing that goes wrong.

    Attributes:
        is_final: Whether this start can't succeed any more, whatever comes.
        is_over: Whether the start has come further since.
        attempts: How often it has been seen to go wrong.
        texts: All texts that say so, whole; the one to quote is the last.
        holders: The pods that hold a volume, or the node.
        began, last: When it was seen first and last; None if no fact says it.
    """

    kind: Kind
    about: About = About()
    is_final: bool = False
    is_over: bool = False
    attempts: int = 1
    texts: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()
    exit: Exit | None = None
    began: datetime | None = None
    last: datetime | None = None

    @property
    def text(self) -> str:
        """The text to quote."""
        return self.texts[-1] if self.texts else ""


class Fault(msgspec.Struct, frozen=True):
    """What one text says: a part of a `Trouble`."""

    kind: Kind
    about: About = About()
    is_final: bool = False
    holders: tuple[str, ...] = ()
