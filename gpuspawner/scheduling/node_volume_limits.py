"""Limits on CSI volumes per node: plugin NodeVolumeLimits (nodevolumelimits/csi.go, v1.36.2).

Since 1.37, it also looks for the drivers on the node (v1.37.2).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from gpuspawner.kube.pods import Pod, Volume
from gpuspawner.kube.storage import (
    CSIDriver,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeSpec,
)

from .csi_migration import AWS_EBS, AZURE_DISK, CINDER, GCE_PD, plugin_of
from .failures import DriverMissing, TooManyVolumes
from .node_info import NodeInfo, PodInfo, pods_after
from .pod_claims import PodClaims
from .rules import Rules
from .storage_index import StorageIndex, class_of_claim

MIGRATED = {
    AWS_EBS: "ebs.csi.aws.com",
    GCE_PD: "pd.csi.storage.gke.io",
    AZURE_DISK: "disk.csi.azure.com",
    CINDER: "cinder.csi.openstack.org",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
}
"""The CSI driver of each in-tree plugin whose volumes count as CSI volumes."""

_CSI = Mapping[str, str]
"""The CSI drivers that count, as in `MIGRATED`."""

_Attached = set[tuple[str, str]]
"""(driver, handle) of each volume."""


class VolumeLimits:
    """Counts the volumes of nodes against their limits, for one pod."""

    def __init__(self, pod: Pod, claims: PodClaims, storage: StorageIndex, rules: Rules) -> None:
        self._storage = storage
        self._minor = rules.minor
        self._new: _Attached = set()
        native: _Attached = set()
        for claim in claims.all:
            self._count_claim(self._new, claim, MIGRATED)
            self._count_claim(native, claim, {})
        for volume in pod.spec.volumes or ():
            _count_inline(self._new, volume)
        self.asked = _by_driver(self._new)
        """The number of the pod's volumes of each driver."""
        self.drivers = frozenset(self.asked)
        """The drivers of the pod's volumes."""
        self._migrated = self.drivers - _by_driver(native).keys()
        """Those of them that only in-tree disks need."""
        found = (storage.get(CSIDriver, name) for name in sorted(self.drivers))
        drivers = (it for it in found if it and it.spec.prevent_pod_scheduling_if_missing)
        self.demanding = [it.metadata.name for it in drivers if rules.minor >= 36]
        """Those of them that want no pods on nodes without them (since 1.36)."""

    @property
    def needed(self) -> bool:
        """Whether the pod has volumes that count."""
        return bool(self._new)

    def failure(
        self, node: NodeInfo, added: Collection[PodInfo], removed: Collection[PodInfo]
    ) -> TooManyVolumes | DriverMissing | None:
        """Return the limit or the driver that excludes a node; None if the pod's volumes fit.

        `added` are pods to count as if they ran there, `removed` are pods to leave out.
        """
        if driver := self.missing_driver(node):
            return DriverMissing(driver)
        limits = self._storage.volume_limits(node.name)
        most = node.claims + len(self._storage.attachments(node.name)) + len(self._new)
        most += sum(len(pod.claims) + len(pod.volumes) for pod in added)
        # Fast path: there is room even if all are different volumes of one driver.
        if all(limits.get(driver, most) >= most for driver in self.drivers):
            return None
        pods = pods_after(node.claimants, added, removed)
        attached, counts = self.attached_to(node.name, pods)
        for driver, number in sorted(_by_driver(self._new - attached).items()):
            if driver in limits and counts[driver] + number > limits[driver]:
                return TooManyVolumes(driver, limits[driver])
        return None

    def missing_driver(self, node: NodeInfo) -> str | None:
        """Return a driver that the node lacks and that wants no pods there; None if it has all.

        On a node without a CSINode object, no in-tree disk counts (`isCSIMigrationOn`).
        """
        if not self.demanding:
            return None
        found = self._storage.get(CSINode, node.name)
        there = {driver.name for driver in found.spec.drivers or ()} if found else self._migrated
        return next((driver for driver in self.demanding if driver not in there), None)

    def beyond(self, node: NodeInfo) -> bool:
        """Return whether the pod's volumes alone exceed a limit of a node."""
        limits = self._storage.volume_limits(node.name)
        return any(number > limits.get(driver, number) for driver, number in self.asked.items())

    def attached_to(self, node: str, pods: Iterable[PodInfo]) -> tuple[_Attached, Counter[str]]:
        """Return the volumes of a node's pods, and how many of each driver it has attached."""
        attached: _Attached = set()
        for pod in pods:
            namespace, name = pod.namespace, pod.name
            names = list(pod.claims)
            names += [f"{name}-{volume.name}" for volume in pod.volumes if volume.ephemeral]
            for claim_name in names:
                claim = self._storage.get(PersistentVolumeClaim, claim_name, namespace)
                if claim is not None:
                    self._count_claim(attached, claim, MIGRATED)
            for volume in pod.volumes:
                _count_inline(attached, volume)
        return attached, _by_driver(attached | self._attachments(node))

    def left(self, node: str, attached: _Attached, counts: Mapping[str, int]) -> dict[str, int]:
        """Return how many volumes of the pod's drivers a node can have, of those with a limit.

        At least as many as the pod has: others may make way for it.

        Args:
            node: Its name.
            attached: As `attached_to` returns it.
            counts: As `attached_to` returns it.
        """
        limits, own = self._storage.volume_limits(node), _by_driver(self._new & attached)
        return {
            driver: max(number, limits[driver] - counts[driver] + own[driver])
            for driver, number in self.asked.items()
            if driver in limits
        }

    def _attachments(self, node: str) -> _Attached:
        attached: _Attached = set()
        if self._minor < 32:
            return attached
        for attachment in self._storage.attachments(node).values():
            driver, name = attachment.spec.attacher, attachment.spec.source.persistent_volume_name
            if not driver or name is None:
                continue
            volume = self._storage.get(PersistentVolume, name)
            if volume is not None and volume.spec.csi is not None:
                attached.add((driver, volume.spec.csi.volume_handle))
        return attached

    def _count_claim(self, attached: _Attached, claim: PersistentVolumeClaim, csi: _CSI) -> None:
        volume = self._storage.get(PersistentVolume, claim.spec.volume_name)
        if volume is None:
            class_ = self._storage.get(StorageClass, class_of_claim(claim))
            if class_ is not None and class_.provisioner:
                driver = csi.get(class_.provisioner, class_.provisioner)
                handle = f"new {claim.metadata.namespace}/{claim.metadata.name}"
                attached.add((driver, handle))
        elif volume.spec.csi is not None:
            source = volume.spec.csi
            if source.driver and source.volume_handle:
                attached.add((source.driver, source.volume_handle))
        else:
            _count_in_tree(attached, volume.spec, csi)


def _by_driver(attached: _Attached) -> Counter[str]:
    return Counter(driver for driver, _ in attached)


def _count_inline(attached: _Attached, volume: Volume) -> None:
    if volume.persistent_volume_claim is None and volume.ephemeral is None:
        _count_in_tree(attached, volume, MIGRATED)


def _count_in_tree(attached: _Attached, disk: Volume | VolumeSpec, csi: _CSI) -> None:
    """Count an in-tree disk for its CSI driver; its id is the handle."""
    driver = csi.get(plugin_of(disk) or "")
    if driver is None:
        return
    if disk.aws_elastic_block_store:
        handle = disk.aws_elastic_block_store.volume_id.rstrip("/").rpartition("/")[2]
    elif disk.gce_persistent_disk:
        handle = disk.gce_persistent_disk.pd_name
    elif disk.azure_disk:
        handle = disk.azure_disk.disk_uri
    else:
        handle = disk.cinder.volume_id if disk.cinder else ""
    attached.add((driver, handle))
