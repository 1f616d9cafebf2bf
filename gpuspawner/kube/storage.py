"""Claims, volumes, storage classes and CSI objects."""

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
    """The claim for which a volume is reserved."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class ClaimSpec(KubeStruct, frozen=True):
    """The specification of a claim."""

    access_modes: tuple[str, ...] | None = None
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    selector: LabelSelector | None = None
    resources: ResourceRequirements | None = None


class PhaseStatus(KubeStruct, frozen=True):
    """The phase of a claim or a volume."""

    phase: str = ""


class ClaimMeta(ObjectMeta, frozen=True):
    """The metadata of a claim."""

    creation_timestamp: str | None = None


class PersistentVolumeClaim(KubeStruct, frozen=True):
    """A PersistentVolumeClaim."""

    metadata: ClaimMeta = ClaimMeta()
    spec: ClaimSpec = ClaimSpec()
    status: PhaseStatus = PhaseStatus()


class VolumeNodeAffinity(KubeStruct, frozen=True):
    """The nodes that can reach a volume."""

    required: NodeSelector | None = None


class VolumeSpec(KubeStruct, frozen=True):
    """The specification of a volume."""

    access_modes: tuple[str, ...] | None = None
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
    """A PersistentVolume."""

    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeSpec = VolumeSpec()
    status: PhaseStatus = PhaseStatus()


class TopologySelectorTerm(KubeStruct, frozen=True):
    """Node labels with which a storage class can provision a volume."""

    match_label_expressions: list[LabelSelectorRequirement] | None = None


class StorageClass(KubeStruct, frozen=True):
    """A StorageClass."""

    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologySelectorTerm] | None = None


class VolumeNodeResources(KubeStruct, frozen=True):
    """A node's limit on the volumes of a driver."""

    count: int | None = None


class CSINodeDriver(KubeStruct, frozen=True):
    """A CSI driver on a node."""

    name: str = ""
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(KubeStruct, frozen=True):
    """The CSI drivers of a node."""

    drivers: tuple[CSINodeDriver, ...] | None = None


class CSINode(KubeStruct, frozen=True):
    """The CSI data of the node with the same name."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(KubeStruct, frozen=True):
    """The specification of a driver."""

    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(KubeStruct, frozen=True):
    """A CSI driver."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(KubeStruct, frozen=True):
    """The space that a storage class has left for the nodes of a topology."""

    metadata: ObjectMeta = ObjectMeta()
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class AttachmentSource(KubeStruct, frozen=True):
    """The volume that is attached."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(KubeStruct, frozen=True):
    """Which volume is attached to which node."""

    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachment(KubeStruct, frozen=True):
    """A volume that is attached to a node, or will be."""

    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
