"""Conflicts between in-tree disks: plugin VolumeRestrictions.

Source: `isVolumeConflict` in volumerestrictions/volume_restrictions.go (v1.36.2). The scheduler
doesn't check the access mode ReadWriteOnce. For ReadWriteOncePod, see `filters`.
"""

from collections.abc import Iterable

from gpuspawner.kube.pods import Volume

from .node_info import PodInfo


def restricted(volumes: Iterable[Volume] | None) -> tuple[Volume, ...]:
    """Return the volumes that can conflict with volumes of other pods."""
    return tuple(
        volume
        for volume in volumes or ()
        if volume.gce_persistent_disk
        or volume.aws_elastic_block_store
        or volume.rbd
        or volume.iscsi
    )


def in_use(volumes: tuple[Volume, ...], pods: Iterable[PodInfo]) -> bool:
    """Return whether one of the disks conflicts with one of the pods."""
    return any(
        _conflict(volume, other) for pod in pods for other in pod.volumes for volume in volumes
    )


def _conflict(one: Volume, other: Volume) -> bool:
    gce, other_gce = one.gce_persistent_disk, other.gce_persistent_disk
    if gce and other_gce and gce.pd_name == other_gce.pd_name:
        return not (gce.read_only and other_gce.read_only)
    ebs, other_ebs = one.aws_elastic_block_store, other.aws_elastic_block_store
    if ebs and other_ebs and ebs.volume_id == other_ebs.volume_id:
        return True
    iscsi, other_iscsi = one.iscsi, other.iscsi
    if iscsi and other_iscsi and iscsi.iqn == other_iscsi.iqn:
        return not (iscsi.read_only and other_iscsi.read_only)
    rbd, other_rbd = one.rbd, other.rbd
    return bool(
        rbd
        and other_rbd
        and not set(rbd.monitors or ()).isdisjoint(other_rbd.monitors or ())
        and (rbd.pool, rbd.image) == (other_rbd.pool, other_rbd.image)
        and not (rbd.read_only and other_rbd.read_only)
    )
