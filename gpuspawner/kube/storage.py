"""Claims, volumes, storage classes and what CSI says about nodes."""

import msgspec

from .meta import (
    AWSElasticBlockStore,
    AzureDisk,
    Cinder,
    CSISource,
    GCEPersistentDisk,
    KubeStruct,
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    ObjectMeta,
    Quantities,
    Quantity,
    ResourceRequirements,
)


class ClaimReference(KubeStruct, frozen=True):
    """The claim that a volume is kept for."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class ClaimSpec(KubeStruct, frozen=True):
    """What a claim asks for."""

    access_modes: list[str] | None = None
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    selector: LabelSelector | None = None
    resources: ResourceRequirements | None = None


class PhaseStatus(KubeStruct, frozen=True):
    """The phase of a claim or a volume."""

    phase: str = ""


class PersistentVolumeClaim(KubeStruct, frozen=True):
    """A claim."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ClaimSpec = ClaimSpec()
    status: PhaseStatus = PhaseStatus()


class VolumeNodeAffinity(KubeStruct, frozen=True):
    """The nodes that can reach a volume."""

    required: NodeSelector | None = None


class VolumeSpec(KubeStruct, frozen=True):
    """What a volume is."""

    access_modes: list[str] | None = None
    capacity: Quantities | None = None
    claim_ref: ClaimReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CSISource | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    cinder: Cinder | None = None


class PersistentVolume(KubeStruct, frozen=True):
    """A volume."""

    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeSpec = VolumeSpec()
    status: PhaseStatus = PhaseStatus()


class TopologySelectorTerm(KubeStruct, frozen=True):
    """Labels that a node needs so that a volume can be made for it."""

    match_label_expressions: list[LabelSelectorRequirement] | None = None


class StorageClass(KubeStruct, frozen=True):
    """A kind of volume."""

    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologySelectorTerm] | None = None
    parameters: dict[str, str] | None = None


class VolumeNodeResources(KubeStruct, frozen=True):
    """How many volumes of a driver a node takes."""

    count: int | None = None


class CSINodeDriver(KubeStruct, frozen=True):
    """A CSI driver on a node."""

    name: str = ""
    node_id: str = msgspec.field(default="", name="nodeID")
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(KubeStruct, frozen=True):
    """The CSI drivers of a node."""

    drivers: list[CSINodeDriver] | None = None


class CSINode(KubeStruct, frozen=True):
    """What CSI knows about the node of the same name."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(KubeStruct, frozen=True):
    """Switches of a driver."""

    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(KubeStruct, frozen=True):
    """A CSI driver."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(KubeStruct, frozen=True):
    """How much a class can still make in a part of the cluster."""

    metadata: ObjectMeta = ObjectMeta()
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class AttachmentSource(KubeStruct, frozen=True):
    """The volume that is attached."""

    persistent_volume_name: str | None = None
    inline_volume_spec: VolumeSpec | None = None


class VolumeAttachmentSpec(KubeStruct, frozen=True):
    """A volume on its way to a node."""

    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachment(KubeStruct, frozen=True):
    """A volume that is, or will be, attached to a node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
