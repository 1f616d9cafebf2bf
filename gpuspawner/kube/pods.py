"""Pods: only the fields that decide where a pod can run."""

import msgspec

from .meta import (
    ISCSI,
    RBD,
    AWSElasticBlockStore,
    AzureDisk,
    BareMeta,
    Cinder,
    Condition,
    CSISource,
    GCEPersistentDisk,
    KubeStruct,
    LabelSelector,
    NodeSelector,
    Quantities,
    ResourceRequirements,
)
from .storage import ClaimSpec


class ContainerPort(KubeStruct, frozen=True):
    """A port; only host ports decide."""

    host_port: int = 0
    container_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = ""


class RestartRule(KubeStruct, frozen=True):
    """One rule of `restartPolicyRules`."""

    action: str = ""


class VolumeMount(KubeStruct, frozen=True):
    """A mount of a volume. Only options that a node has to support matter to the scheduler."""

    bind_mount_options: list[str] | None = None


class Container(KubeStruct, frozen=True):
    """A container or an init container."""

    name: str = ""
    resources: ResourceRequirements | None = None
    ports: list[ContainerPort] | None = None
    restart_policy: str | None = None
    restart_policy_rules: list[RestartRule] | None = None
    volume_mounts: list[VolumeMount] | None = None


class ClaimSource(KubeStruct, frozen=True):
    """The PersistentVolumeClaim of a volume."""

    claim_name: str = ""


class ClaimTemplate(KubeStruct, frozen=True):
    """The template of an ephemeral volume's claim."""

    spec: ClaimSpec = ClaimSpec()


class EphemeralSource(KubeStruct, frozen=True):
    """An ephemeral volume: Kubernetes creates its claim for the pod."""

    volume_claim_template: ClaimTemplate = ClaimTemplate()


class Volume(KubeStruct, frozen=True):
    """A volume of a pod; only the sources that decide."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: EphemeralSource | None = None
    csi: CSISource | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    cinder: Cinder | None = None
    iscsi: ISCSI | None = None
    rbd: RBD | None = None


class NodeAffinity(KubeStruct, frozen=True):
    """The required node affinity. Preferences never exclude a node."""

    required: NodeSelector | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(KubeStruct, frozen=True):
    """Which other pods to match, and over which topology key."""

    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None
    topology_key: str = ""
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class PodAffinity(KubeStruct, frozen=True):
    """The required affinity or anti-affinity to other pods."""

    required: list[PodAffinityTerm] | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(KubeStruct, frozen=True):
    """All affinities of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(KubeStruct, frozen=True):
    """A toleration of a taint."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class TopologySpreadConstraint(KubeStruct, frozen=True):
    """How evenly pods must spread over domains; only `DoNotSchedule` constraints decide."""

    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class Named(KubeStruct, frozen=True):
    """A scheduling gate, a device claim (dynamic resource allocation), or a workload."""

    name: str = ""


class SchedulingGroup(KubeStruct, frozen=True):
    """The pod group with which a pod is scheduled."""

    pod_group_name: str | None = None


class PodSpec(KubeStruct, frozen=True):
    """The specification of a pod."""

    node_name: str = ""
    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    overhead: Quantities | None = None
    resources: ResourceRequirements | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    volumes: list[Volume] | None = None
    scheduling_gates: list[Named] | None = None
    resource_claims: list[Named] | None = None
    scheduling_group: SchedulingGroup | None = None
    workload_ref: Named | None = None
    host_network: bool = False
    host_users: bool | None = None
    termination_grace_period_seconds: int | None = None

    @property
    def required_nodes(self) -> NodeSelector | None:
        """What its node affinity requires, beside its `node_selector`; None if it has none."""
        nodes = self.affinity.node_affinity if self.affinity else None
        return nodes.required if nodes else None


class ContainerStatus(KubeStruct, frozen=True):
    """A container's actual resources; they differ from the spec during a resize."""

    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: Quantities | None = None


class PodStatus(KubeStruct, frozen=True):
    """The status of a pod."""

    phase: str = ""
    nominated_node_name: str = ""
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    resources: ResourceRequirements | None = None
    allocated_resources: Quantities | None = None


class PodAnnotations(KubeStruct, frozen=True):
    """The annotations that decide. Others may hold secrets, such as the last applied manifest."""

    mirror: str | None = msgspec.field(default=None, name="kubernetes.io/config.mirror")


class PodMeta(BareMeta, frozen=True):
    """The metadata of a pod."""

    annotations: PodAnnotations | None = None


class Pod(KubeStruct, frozen=True):
    """A pod."""

    metadata: PodMeta = PodMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    def with_spec(self, **changes: object) -> "Pod":
        """Return the pod with these fields of its specification."""
        return msgspec.structs.replace(self, spec=msgspec.structs.replace(self.spec, **changes))
