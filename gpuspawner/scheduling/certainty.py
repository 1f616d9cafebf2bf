"""Finds missing or undecodable objects that could change the verdict for one pod."""

from collections.abc import Collection, Iterable, Iterator

from gpuspawner.kube.objects import Undecodable
from gpuspawner.kube.pods import Pod, PodSpec
from gpuspawner.kube.storage import PersistentVolumeClaim

from .failures import Failures, NoVolume
from .filters import Filters
from .node_info import NodeInfo
from .node_resources_fit import fits
from .pod_claims import claim_name, missing_kinds
from .requests import is_claimable
from .rules import DEFAULT_SCHEDULER
from .state import ClusterState
from .verdict import Unknown, Why

COUNTED_KINDS = ("PersistentVolumeClaim", "PersistentVolume", "StorageClass", "VolumeAttachment")
"""The kinds from which the volumes of a node are counted."""


def unknown_storage(
    state: ClusterState, pod: Pod, new_claims: Iterable[PersistentVolumeClaim]
) -> tuple[Unknown, ...]:
    """Return a doubt for each unknown kind on which the pod's claims depend."""
    kinds = missing_kinds(pod, state.storage, new_claims)
    return tuple(
        Unknown(Why.NOT_KNOWN, kind, may_admit=True)
        for kind in sorted(kinds)
        if not state.known(kind)
    )


def doubts(filters: Filters) -> tuple[Unknown, ...]:
    """Return everything else that is unknown and could change the verdict, on whatever node."""
    return (
        *_other_deciders(filters.state, filters.pod),
        *_missing_kinds(filters),
        *_missing_storage(filters),
        *_undecodable_objects(filters),
    )


def uncertain(state: ClusterState, node: NodeInfo) -> Unknown | None:
    """Return why a node's resources or pods are unknown; None if they are known."""
    if not (state.undecodable or node.doubtful):  # thousands of nodes may be asked about
        return None
    if node.problem:
        return Unknown(Why.UNDECODABLE_OBJECT, f"Node {node.name}: {node.problem}", may_admit=True)
    for key, problem in node.unreadable.items():
        return Unknown(Why.UNDECODABLE_OBJECT, f"Pod {key}: {problem}")
    for undecodable in state.undecodable.pods_on(node.name):
        return Unknown(Why.UNDECODABLE_OBJECT, undecodable.text)
    return None


def _other_deciders(state: ClusterState, pod: Pod) -> Iterator[Unknown]:
    spec = pod.spec
    scheduler = spec.scheduler_name or DEFAULT_SCHEDULER
    if scheduler not in state.rules.schedulers:
        yield Unknown(Why.OTHER_SCHEDULER, scheduler, may_admit=True)
    for gate in spec.scheduling_gates or ():
        yield Unknown(Why.GATED, gate.name, may_admit=True)
    # Claims and declared features only take nodes away: `DynamicResources` and
    # `NodeDeclaredFeatures` are filters beside the others (v1.36.2).
    for claim in spec.resource_claims or ():
        yield Unknown(Why.DEVICE_CLAIM, claim.name)
    for since, why, field, is_set in _deciding_fields(spec):
        if is_set and state.rules.minor >= since:
            yield Unknown(why, field, may_admit=why is Why.GROUPED)


def _deciding_fields(spec: PodSpec) -> Iterable[tuple[int, Why, str, bool]]:
    """Return fields behind feature gates: which minor version reads each first, and if it is set.

    The API server drops or refuses a field whose gate is off, so a pod that has it shows the gate.
    Sources: gangscheduling/gangscheduling.go (v1.35.4, v1.36.2), and `InferForScheduling` of
    component-helpers' nodedeclaredfeatures/features (v0.35.4, v0.36.2, v0.37.2).
    """
    containers = (spec.containers or []) + (spec.init_containers or [])
    rules = (rule for it in containers for rule in it.restart_policy_rules or ())
    restarts_all = any(rule.action == "RestartAllContainers" for rule in rules)
    on_host = spec.host_network and spec.host_users is False
    mounts = (mount for it in containers for mount in it.volume_mounts or ())
    return (
        (35, Why.GROUPED, "workloadRef", spec.workload_ref is not None),
        (36, Why.GROUPED, "schedulingGroup", spec.scheduling_group is not None),
        (35, Why.NODE_FEATURE, "RestartAllContainers", restarts_all),
        (36, Why.NODE_FEATURE, "hostUsers with hostNetwork", on_host),
        (37, Why.NODE_FEATURE, "bindMountOptions", any(it.bind_mount_options for it in mounts)),
    )


def _missing_kinds(filters: Filters) -> Iterator[Unknown]:
    state = filters.state
    related = filters.related
    if not state.known("Node"):
        yield Unknown(Why.NOT_KNOWN, "Node", may_admit=True)
    if not state.known("Pod"):
        yield Unknown(Why.NOT_KNOWN, "Pod", may_admit=related)
    if not filters.priority.known and state.has_nominations:
        # Nominations of pods with the same or higher priority count. `preemption` does the rest.
        yield Unknown(Why.NOT_KNOWN, "PriorityClass", may_admit=True)
    if not state.known("Namespace") and filters.by_namespace_label:
        yield Unknown(Why.NOT_KNOWN, "Namespace", may_admit=True)


def _missing_storage(filters: Filters) -> Iterator[Unknown]:
    state, drivers = filters.state, filters.limits.drivers
    for claim in filters.binding.unplaced:
        yield Unknown(Why.NEW_VOLUME, claim)
    for name in filters.binding.untranslatable:
        yield Unknown(Why.UNDECODABLE_OBJECT, f"PersistentVolume {name}: it has no CSI form")
    kinds: tuple[str, ...] = ()
    if filters.claims.waiting:
        kinds += ("CSIDriver", "CSIStorageCapacity")
    elif drivers and not state.rules.missing_drivers_by_gate:
        kinds += ("CSIDriver",)
    if drivers:
        if not state.known("CSINode"):
            may_admit = bool(filters.binding.migrating or filters.limits.demanding)
            yield Unknown(Why.NOT_KNOWN, "CSINode", may_admit=may_admit)
        elif any(not drivers.isdisjoint(state.storage.volume_limits(it)) for it in state.nodes):
            kinds += COUNTED_KINDS
    for kind in kinds:
        if not state.known(kind):
            yield Unknown(Why.NOT_KNOWN, kind)


def missing_drivers(filters: Filters, nodes: Iterable[NodeInfo]) -> tuple[Unknown, ...]:
    """Return a doubt if one of the nodes that refuse the pod may only lack a driver by a gate."""
    limits, priority = filters.limits, filters.priority
    by_gate = limits.demanding and filters.state.rules.missing_drivers_by_gate
    for node in nodes if by_gate else ():
        has_room = fits(filters.asked, node.free)
        makes_room = node.has_below(priority.value) or not priority.known
        if (has_room or makes_room) and limits.missing_driver(node):
            field = "preventPodSchedulingIfMissing"
            return (Unknown(Why.RELEASE, field, may_admit=True, may_refuse=False),)
    return ()


def volumes_being_made(filters: Filters, failures: Collection[Failures]) -> tuple[Unknown, ...]:
    """Return a doubt for each claim that keeps the pod off a node until its volume is made."""
    names = (it for it in filters.claims.being_made if (NoVolume(it),) in failures)
    return tuple(Unknown(Why.NEW_VOLUME, it, may_admit=True) for it in names)


def _undecodable_objects(filters: Filters) -> Iterable[Unknown]:
    """Return one doubt per kind and effect: thousands of pods may be undecodable."""
    found: dict[tuple[str, bool, bool], Unknown] = {}
    for undecodable in filters.state.undecodable:
        may_admit, may_refuse = _effect(undecodable, filters)
        key = undecodable.kind, may_admit, may_refuse
        if (may_admit or may_refuse) and key not in found:
            found[key] = Unknown(Why.UNDECODABLE_OBJECT, undecodable.text, may_admit, may_refuse)
    return found.values()


def _effect(undecodable: Undecodable, filters: Filters) -> tuple[bool, bool]:
    """Return whether an undecodable object may admit the pod, and whether it may refuse it."""
    related = filters.related
    match undecodable.kind:
        case "Node":
            return True, related
        case "Pod":
            # If its node is readable, it concerns that node only (see `uncertain`).
            return related, undecodable.repels or not undecodable.node or related
        case "Namespace":
            return filters.by_namespace_label, filters.by_namespace_label
        case "DeviceClass":
            return any(is_claimable(resource) for resource, _ in filters.asked), False
        case "PriorityClass":
            spec = filters.pod.spec
            names = ("", undecodable.name)
            return spec.priority is None and spec.priority_class_name in names, False
    concerned = _concerns(undecodable, filters)
    return concerned, concerned


def _concerns(undecodable: Undecodable, filters: Filters) -> bool:
    pod = filters.pod
    names = {claim_name(pod, volume) for volume in pod.spec.volumes or ()} - {None}
    if not names or undecodable.kind != "PersistentVolumeClaim":
        return bool(names or filters.limits.drivers)
    mine = undecodable.namespace == pod.metadata.namespace and undecodable.name in names
    return mine or not undecodable.name or bool(filters.limits.drivers)
