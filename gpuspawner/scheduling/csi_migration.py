"""CSI migration: in-tree volumes that a node serves through a CSI driver.

On such a node, the volume's topology uses the labels of the driver. Sources: `tryTranslatePVToCSI`
in volumebinding/binder.go (v1.36.2), csi-translation-lib plugins/in_tree_volume.go (v0.36.2).
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from msgspec.structs import replace

from gpuspawner.kube.meta import LabelSelectorRequirement, NodeSelector, NodeSelectorTerm
from gpuspawner.kube.pods import Volume
from gpuspawner.kube.storage import PersistentVolume, VolumeNodeAffinity, VolumeSpec

MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
"""The annotation of a CSINode that lists in-tree plugins, separated by commas."""

AWS_EBS = "kubernetes.io/aws-ebs"
GCE_PD = "kubernetes.io/gce-pd"
AZURE_DISK = "kubernetes.io/azure-disk"
CINDER = "kubernetes.io/cinder"

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
ZONE_LABELS = {BETA_ZONE: ZONE, BETA_REGION: REGION, ZONE: ZONE, REGION: REGION}
"""Zone and region labels, each with its current name."""

_CSI_ZONES = {
    AWS_EBS: "topology.ebs.csi.aws.com/zone",
    GCE_PD: "topology.gke.io/zone",
    CINDER: "topology.cinder.csi.openstack.org/zone",
}
"""In-tree plugin to the zone label of its CSI driver. Azure's volumes keep their own label."""

_AWS_URL = re.compile(r"aws://[^/?#]*/+vol-[^/?#]*/*")


def plugin_of(disk: Volume | VolumeSpec) -> str | None:
    """Return the in-tree plugin of a disk; None if it can't migrate."""
    if disk.aws_elastic_block_store:
        return AWS_EBS
    if disk.gce_persistent_disk:
        return GCE_PD
    if disk.azure_disk:
        return AZURE_DISK
    return CINDER if disk.cinder else None


def migrated_plugins(annotations: Mapping[str, str] | None) -> frozenset[str]:
    """Return the plugins that a node serves through CSI, by its CSINode's annotations."""
    return _plugins((annotations or {}).get(MIGRATED_PLUGINS, ""))


@lru_cache(maxsize=256)
def _plugins(listed: str) -> frozenset[str]:
    """Return the plugins of a list, which is the same on nearly all nodes."""
    return frozenset(listed.split(",")) - {""}


def translated(volume: PersistentVolume) -> PersistentVolume:
    """Return a volume with the node affinity that counts on nodes that migrated its plugin."""
    csi_zone = _CSI_ZONES.get(plugin_of(volume.spec) or "")
    if csi_zone is None:
        return volume
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity else None
    terms = list((required.node_selector_terms if required else None) or ())
    labels = volume.metadata.labels or {}
    zone, region = _labels_in_use(terms, labels)
    if _has_values(terms, zone):
        terms = _renamed(terms, zone, csi_zone)
    else:
        zones = {part.strip() for part in labels.get(zone, "").split("__")} - {""}
        if zones:
            near = LabelSelectorRequirement(csi_zone, "In", tuple(sorted(zones)))
            terms = [_with(term, near) for term in terms or [NodeSelectorTerm()]]
    if region == BETA_REGION and _has_values(terms, region):
        terms = _renamed(terms, region, REGION)
    if not terms:
        return volume
    changed = VolumeNodeAffinity(required=NodeSelector(node_selector_terms=tuple(terms)))
    return replace(volume, spec=replace(volume.spec, node_affinity=changed))


def translates(volume: PersistentVolume) -> bool:
    """Return whether a volume has a CSI form. The scheduler fails on a volume without one."""
    spec = volume.spec
    if spec.aws_elastic_block_store:
        name = spec.aws_elastic_block_store.volume_id
        return not name.startswith("aws://") or _AWS_URL.fullmatch(name) is not None
    if spec.gce_persistent_disk:
        labels = volume.metadata.labels or {}
        zones = (labels.get(BETA_ZONE) or labels.get(ZONE, "")).split("__")
        regions = {tuple(zone.split("-")[:2]) for zone in zones}
        return len(zones) == 1 or (
            len(regions) == 1 and all(zone.count("-") == 2 for zone in zones)
        )
    kind = spec.azure_disk.kind if spec.azure_disk else None
    return kind is None or kind.lower() == "managed"


def _labels_in_use(terms: Iterable[NodeSelectorTerm], labels: Mapping[str, str]) -> tuple[str, str]:
    keys = {e.key for term in terms for e in term.match_expressions or ()}
    for named in (keys, labels):
        if ZONE in named:
            return ZONE, REGION
        if BETA_ZONE in named:
            return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _has_values(terms: Iterable[NodeSelectorTerm], key: str) -> bool:
    return any(e.key == key and e.values for term in terms for e in term.match_expressions or ())


def _renamed(terms: Iterable[NodeSelectorTerm], old: str, new: str) -> list[NodeSelectorTerm]:
    def renamed(it: LabelSelectorRequirement) -> LabelSelectorRequirement:
        return replace(it, key=new) if it.key == old else it

    return [
        replace(term, match_expressions=tuple(map(renamed, term.match_expressions or ())))
        for term in terms
    ]


def _with(term: NodeSelectorTerm, more: LabelSelectorRequirement) -> NodeSelectorTerm:
    expressions = (*(term.match_expressions or ()), more)
    return replace(term, match_expressions=expressions)
