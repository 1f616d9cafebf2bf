"""Nodes, namespaces, device classes and priority classes."""

from .meta import Condition, KubeStruct, ObjectMeta, Quantities


class Taint(KubeStruct, frozen=True):
    """What keeps pods away from a node; effects NoSchedule and NoExecute decide."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(KubeStruct, frozen=True):
    """What an administrator wants of a node."""

    unschedulable: bool = False
    taints: list[Taint] | None = None


class NodeStatus(KubeStruct, frozen=True):
    """What a node has; quantities as the API writes them."""

    allocatable: Quantities | None = None
    capacity: Quantities | None = None
    conditions: list[Condition] | None = None


class Node(KubeStruct, frozen=True):
    """A machine."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Namespace(KubeStruct, frozen=True):
    """A namespace; its labels decide about `namespaceSelector`."""

    metadata: ObjectMeta = ObjectMeta()


class DeviceClassSpec(KubeStruct, frozen=True):
    """The extended resource that the class serves, if any."""

    extended_resource_name: str | None = None


class DeviceClass(KubeStruct, frozen=True):
    """A kind of device."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()


class PriorityClass(KubeStruct, frozen=True):
    """A priority by name."""

    metadata: ObjectMeta = ObjectMeta()
    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None
