"""Pods between their creation and their server's start: only the fields that tell how far they are.

As in the API, null means an absent list, object or time.
"""

import msgspec

from .meta import BareMeta, Condition, KubeStruct, ResourceRequirements
from .objects import UNDECODABLE, strict_convert
from .pods import Named, Volume
from .servers import Running


class StartingMeta(BareMeta, frozen=True):
    """The metadata of a starting pod."""

    creation_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None


class StartingContainer(KubeStruct, frozen=True):
    """A container or an init container; a restartable init container keeps running.

    Since 1.34, a container's own policy goes before the pod's, and rules go before both.
    """

    name: str = ""
    image: str = ""
    restart_policy: str | None = None
    restart_policy_rules: list[object] | None = None
    resources: ResourceRequirements | None = None


class StartingSpec(KubeStruct, frozen=True):
    """The specification of a starting pod."""

    node_name: str = ""
    restart_policy: str = ""
    active_deadline_seconds: int | None = None
    containers: list[StartingContainer] | None = None
    init_containers: list[StartingContainer] | None = None
    volumes: list[Volume] | None = None
    scheduling_gates: list[Named] | None = None


class ConditionSince(Condition, frozen=True):
    """A condition, with the time since which it has its status."""

    last_transition_time: str | None = None


class Waiting(KubeStruct, frozen=True):
    """A container that doesn't run yet, or not again."""

    reason: str = ""
    message: str = ""


class Terminated(KubeStruct, frozen=True):
    """A container that has ended."""

    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(KubeStruct, frozen=True):
    """What a container does; at most one of these is set."""

    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class DeviceHealth(KubeStruct, frozen=True):
    """The health of a device: `Healthy`, `Unhealthy` or `Unknown`."""

    resource_id: str = msgspec.field(default="", name="resourceID")
    health: str = ""
    message: str | None = None


class DeviceStatus(KubeStruct, frozen=True):
    """The devices that a container has of one resource, by its name or its claim's."""

    name: str = ""
    resources: list[DeviceHealth] | None = None


class StartingContainerStatus(KubeStruct, frozen=True):
    """How far a container is."""

    name: str = ""
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    state: ContainerState | None = None
    last_state: ContainerState | None = None
    allocated_resources_status: list[DeviceStatus] | None = None


class StartingStatus(KubeStruct, frozen=True):
    """How far a pod is."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    start_time: str | None = None
    conditions: list[ConditionSince] | None = None
    container_statuses: list[StartingContainerStatus] | None = None
    init_container_statuses: list[StartingContainerStatus] | None = None


class StartingPod(KubeStruct, frozen=True):
    """A pod that starts."""

    metadata: StartingMeta = StartingMeta()
    spec: StartingSpec = StartingSpec()
    status: StartingStatus = StartingStatus()


def read_pod(plain: object) -> StartingPod | None:
    """Read a pod as KubeSpawner knows it; None if there is none, or if it can't be read."""
    if plain is None:
        return None
    try:
        return strict_convert(plain, StartingPod)
    except UNDECODABLE:
        return None
