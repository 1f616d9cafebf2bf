"""Whether users' home directories can get their volumes, and where servers can use them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from gpuspawner.doctor.nodes import selected
from gpuspawner.gates.what_if import Tried
from gpuspawner.kube.quoting import count, did_you_mean, listing
from gpuspawner.kube.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from gpuspawner.messages.administrators import Finding, error, warning
from gpuspawner.preflight.decision import Apart
from gpuspawner.scheduling.pod_claims import WAIT, default_classes
from gpuspawner.scheduling.state import ClusterState
from gpuspawner.scheduling.storage_index import class_of_volume
from gpuspawner.scheduling.volume_candidates import is_one_zone, places_of, reach_of

_OF_KUBESPAWNER = "singleuser-storage"  # the component of each claim that it makes
_ZONE, _NODE = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
_STAYS_IN = {
    "blockvolume.csi.oraclecloud.com": _ZONE,
    "cinder.csi.openstack.org": _ZONE,
    "disk.csi.azure.com": _ZONE,
    "diskplugin.csi.alibabacloud.com": _ZONE,
    "ebs.csi.aws.com": _ZONE,
    "ebs.csi.eks.amazonaws.com": _ZONE,
    "pd.csi.storage.gke.io": _ZONE,
    "vpc.block.csi.ibm.io": _ZONE,
    "microk8s.io/hostpath": _NODE,
    "openebs.io/local": _NODE,
    "rancher.io/local-path": _NODE,
    "topolvm.io": _NODE,
}
"""The label of the place that volumes of a provisioner usually don't leave."""


def check(state: ClusterState, tried: list[Tried]) -> Iterator[Finding]:
    """Check the StorageClass of the claims that KubeSpawner creates."""
    if not state.known("StorageClass"):
        return
    for wanted in dict.fromkeys(name for it in tried for name in _wanted(it)):
        used = _used(state, wanted)
        if _is_missing(state, wanted):
            yield _missing(wanted, state.all("StorageClass"))
        elif used and used[0].volume_binding_mode != WAIT and not is_one_zone(places_of(used[0])):
            yield warning(
                "storage-immediate",
                f"The StorageClass {used[0].metadata.name} makes volumes before the scheduler "
                "chooses a node, so the first server of each user starts unchecked.",
                f"Use a StorageClass with volumeBindingMode: {WAIT}.",
            )


def is_without_class(state: ClusterState, tried: Tried) -> bool:
    """Whether the server's home directory can't be made, for want of its class."""
    return state.known("StorageClass") and any(_is_missing(state, it) for it in _wanted(tried))


def _is_missing(state: ClusterState, wanted: str | None) -> bool:
    """Whether no class makes a volume, and none is there: those made by hand only name a class."""
    volumes = state.storage.all(PersistentVolume)
    free = {class_of_volume(it) for it in volumes if it.status.phase == "Available"}
    return not _used(state, wanted) and (wanted or "") not in free


def _used(state: ClusterState, wanted: str | None) -> list[StorageClass]:
    """Return the class of this name, or the default classes for None."""
    names = default_classes(state.storage) if wanted is None else [wanted]
    found = (state.storage.get(StorageClass, name) for name in names)
    return [it for it in found if it is not None]


def _missing(wanted: str | None, classes: Iterable[str]) -> Finding:
    place = "KubeSpawner.storage_class (in the chart, singleuser.storage.dynamic.storageClass)"
    if wanted is None:
        return error(
            "storage-class",
            "The cluster has no default StorageClass, so no home directory can be made.",
            f"Mark a StorageClass as the default, or name one in {place}.",
        )
    return error(
        "storage-class",
        f"There is no StorageClass {wanted}{did_you_mean(wanted, classes)}, so no home "
        "directory can be made.",
        f"Correct {place}.",
    )


def _wanted(tried: Tried) -> Iterator[str | None]:
    """Yield the classes of the claims; None is the default."""
    for claim in tried.proposal.new_claims if tried.proposal else ():
        spec = claim.get("spec")
        name = spec.get("storageClassName") if isinstance(spec, Mapping) else None
        if name != "":  # without a class, the administrator makes the volumes
            yield name


def check_places(state: ClusterState, tried: Sequence[Tried]) -> Iterator[Finding]:
    """Find servers that nobody can start whose home directory is in some zone, or on some node."""
    servers = [it for it in tried if it.server.smallest and it.proposal and it.proposal.new_claims]
    places = _of_homes(state) or _of_first_homes(state, servers)
    found: defaultdict[tuple[Apart, int], list[str]] = defaultdict(list)
    for it in servers:
        nodes = {node.name: node for node in selected(state, it)}
        away = [place for place in places if place[0].isdisjoint(nodes)]
        if nodes and away:
            files = [state.nodes[name] for names, _ in away for name in names]
            homes = sum(number for _, number in away)
            found[Apart.of(files, nodes.values()), homes].append(it.server.name)
    for (apart, homes), names in found.items():
        here, there = (_named(it, apart) for it in (apart.files, apart.room))
        many = count(homes, "home directory is", "home directories are")
        lead = f"{many} {here}" if homes else f"A home directory may be made {here} and stays there"
        yield warning(
            "homes-elsewhere",
            f"{lead}, but the nodes for {listing(names)} are {there}, so an owner can't use both.",
            "Add such nodes there, or use volumes that all nodes reach, of NFS for example.",
        )


def _of_homes(state: ClusterState) -> list[tuple[frozenset[str], int]]:
    """Return the nodes that reach homes which KubeSpawner has made, and how many; by place."""
    counted: defaultdict[bytes, list[PersistentVolume]] = defaultdict(list)
    for claim in state.storage.all(PersistentVolumeClaim):
        volume = state.storage.get(PersistentVolume, claim.spec.volume_name)
        if volume and (claim.metadata.labels or {}).get("component") == _OF_KUBESPAWNER:
            counted[msgspec.msgpack.encode(volume.spec.node_affinity)].append(volume)
    reaches = ((reach_of(volumes[0]), len(volumes)) for volumes in counted.values())
    return [
        (frozenset(it.name for it in state.nodes.values() if reach.reaches(it.labels)), number)
        for reach, number in reaches
    ]


def _of_first_homes(
    state: ClusterState, servers: Sequence[Tried]
) -> list[tuple[frozenset[str], int]]:
    """As `_of_homes`, of places where the first ones may be made, if their volumes stay there."""
    classes = [used for it in servers for name in _wanted(it) for used in _used(state, name)]
    label = next((_STAYS_IN[it.provisioner] for it in classes if it.provisioner in _STAYS_IN), "")
    places: defaultdict[str, set[str]] = defaultdict(set)
    for it in servers:
        for node in selected(state, it):
            if label in node.labels:
                places[node.labels[label]].add(node.name)
    return [(frozenset(names), 0) for names in places.values()]


def _named(names: Sequence[str], apart: Apart) -> str:
    if not names:
        return "where no node is"
    few = " and ".join(names) if len(names) < 4 else f"{names[0]} … {names[-1]}"
    return f"{'in zone' if apart.are_zones else 'on'} {few}"
