"""Nodes, namespaces, device classes and priority classes."""

from typing import Self

import msgspec

from .meta import KubeStruct, ObjectMeta, Quantities


class Taint(KubeStruct, frozen=True):
    """A taint, which keeps pods away from a node; effects NoSchedule and NoExecute decide."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeMeta(ObjectMeta, frozen=True):
    """The metadata of a node."""

    creation_timestamp: str = ""


class NodeSpec(KubeStruct, frozen=True):
    """The settings of a node: its cordon, its taints, and its name at the cloud."""

    provider_id: str = msgspec.field(default="", name="providerID")
    unschedulable: bool = False
    taints: tuple[Taint, ...] | None = None


class NodeImage(KubeStruct, frozen=True):
    """An image on a node, with a name for each of its tags and digests."""

    names: list[str] | None = None
    size_bytes: int = 0


class NodeStatus(KubeStruct, frozen=True):
    """The resources of a node, quantities as in the API; and its largest images."""

    allocatable: Quantities | None = None
    capacity: Quantities | None = None
    images: list[NodeImage] | None = None


class Node(KubeStruct, frozen=True):
    """A node."""

    metadata: NodeMeta = NodeMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    def without_images(self) -> Self:
        """Return the node without its images, which may have hundreds of names."""
        if not self.status.images:
            return self
        status = msgspec.structs.replace(self.status, images=None)
        return msgspec.structs.replace(self, status=status)


class Namespace(KubeStruct, frozen=True):
    """A namespace; a `namespaceSelector` matches its labels."""

    metadata: ObjectMeta = ObjectMeta()


class DeviceClassSpec(KubeStruct, frozen=True):
    """The extended resource that the class serves, if any."""

    extended_resource_name: str | None = None


class DeviceClass(KubeStruct, frozen=True):
    """A class of devices (dynamic resource allocation)."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()


class PriorityClass(KubeStruct, frozen=True):
    """A named priority for pods."""

    metadata: ObjectMeta = ObjectMeta()
    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None
