"""Checks a pod's claims before any node.

The PreFilter parts of the plugins VolumeRestrictions, VolumeBinding and VolumeZone (v1.36.2), in
their order. A claim that is missing, lost, terminating or not bound yet excludes every node.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from gpuspawner.kube.pods import Pod, Volume
from gpuspawner.kube.storage import ClaimMeta, PersistentVolume, PersistentVolumeClaim, StorageClass

from .csi_migration import plugin_of
from .failures import Rejected
from .node_info import pod_key
from .storage_index import BETA_STORAGE_CLASS, StorageIndex, class_of_claim
from .volume_candidates import candidates, what_suits

ONE_POD = "ReadWriteOncePod"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
WAIT = "WaitForFirstConsumer"
_IS_DEFAULT = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
"""Either annotation marks a default class."""


class BoundClaim(msgspec.Struct, frozen=True):
    """A claim with its volume; None if the volume doesn't exist."""

    claim: PersistentVolumeClaim
    volume: PersistentVolume | None
    ephemeral: bool
    """Whether the claim was created for the pod; VolumeZone ignores these claims."""


class PodClaims(msgspec.Struct, frozen=True):
    """The claims of a pod, sorted by what the scheduler does with them."""

    bound: tuple[BoundClaim, ...] = ()
    waiting: tuple[PersistentVolumeClaim, ...] = ()
    """Unbound claims whose class waits for the first consumer."""
    provisioning: tuple[PersistentVolumeClaim, ...] = ()
    """Claims that don't exist yet and are bound immediately, before the scheduler considers the
    pod. The location of their volumes is unknown."""
    one_pod: frozenset[str] = frozenset()
    """Names of ReadWriteOncePod claims."""
    ephemeral: frozenset[str] = frozenset()
    """Names of the claims of its ephemeral volumes, which are made after the pod."""

    @property
    def all(self) -> tuple[PersistentVolumeClaim, ...]:
        """All claims."""
        return tuple(b.claim for b in self.bound) + self.waiting + self.provisioning

    def alone(self, pod: Pod) -> frozenset[str]:
        """The pod's ReadWriteOncePod claims, by namespace/name."""
        return frozenset(pod_key(pod.metadata.namespace, it) for it in self.one_pod)

    def static(self, storage: StorageIndex) -> list[PersistentVolumeClaim]:
        """Return the waiting claims that take a volume that is there: nobody can make one."""
        classes = ((it, storage.get(StorageClass, class_of_claim(it))) for it in self.waiting)
        return [it for it, class_ in classes if not _provisions(class_)]

    @property
    def unplaced(self) -> list[PersistentVolumeClaim]:
        """The waiting claims that other pods may have too, and that no node has been chosen for."""
        shared = (it for it in self.waiting if it.metadata.name not in self.ephemeral)
        return [it for it in shared if selected_node(it) is None]

    @property
    def being_made(self) -> list[str]:
        """Names of waiting claims whose volumes are being made, for the node of an earlier pod."""
        return [it.metadata.name for it in self.waiting if selected_node(it) is not None]


def missing_kinds(
    pod: Pod, storage: StorageIndex, new: Iterable[PersistentVolumeClaim]
) -> set[str]:
    """Return the kinds of the objects that the pod's claims need and that don't exist."""
    kinds = set()
    for found in _find(pod, storage, new):
        if isinstance(found, Rejected):
            kinds.add("PersistentVolumeClaim")
            continue
        volume_name = found.claim.spec.volume_name
        if not volume_name or storage.get(PersistentVolume, volume_name) is None:
            kinds.add("PersistentVolume")
        if not volume_name and storage.get(StorageClass, class_of_claim(found.claim)) is None:
            kinds.add("StorageClass")
    return kinds


def selected_node(claim: PersistentVolumeClaim) -> str | None:
    """Return the node for which a scheduler has let a claim's volume be made, if any."""
    return (claim.metadata.annotations or {}).get(SELECTED_NODE)


def needs_of(claim: PersistentVolumeClaim, storage: StorageIndex) -> tuple[object, ...]:
    """Return what a verdict reads of a claim; equal for two users' homes that are alike.

    Its name doesn't count, nor which nodes have its volume attached.
    """
    has_volume = bool(claim.spec.volume_name)
    standing = (
        claim.status.phase == "Lost",
        claim.metadata.deletion_timestamp is not None,
        has_volume,
        BIND_COMPLETED in (claim.metadata.annotations or ()),
    )
    volume = storage.get(PersistentVolume, claim.spec.volume_name) if has_volume else None
    if volume is None:
        return *standing, selected_node(claim), *what_suits(claim, storage)
    spec = volume.spec
    driver = spec.csi.driver if spec.csi else plugin_of(spec)
    return *standing, driver, spec.node_affinity, sorted((volume.metadata.labels or {}).items())


class _Found(NamedTuple):
    claim: PersistentVolumeClaim
    new: bool
    """Whether the claim doesn't exist yet."""
    ephemeral: bool


def claim_name(pod: Pod, volume: Volume) -> str | None:
    """Return the name of a volume's claim; None if the volume has no claim."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    if volume.ephemeral is not None:
        return f"{pod.metadata.name}-{volume.name}"
    return None


def pod_claims(
    pod: Pod, storage: StorageIndex, new: Iterable[PersistentVolumeClaim]
) -> PodClaims | Rejected:
    """Sort the claims of a pod, or return why no node can hold it.

    `new` are claims that are created before the pod.
    """
    claims: list[_Found] = []
    for found in _find(pod, storage, new):
        if isinstance(found, Rejected):
            return found
        claims.append(found)
    # The scheduler reports a missing claim before a lost one, in any order.
    for found in claims:
        lost = _unusable(pod, found)
        if lost is not None:
            return lost
    return _sort(claims, storage)


def without_volumes(pod: Pod) -> Pod:
    """Return a pod without its volumes: what other rules refuse, its claims can't change."""
    return pod.with_spec(volumes=None)


def made_by_hand(
    pod: Pod, storage: StorageIndex, new: Iterable[PersistentVolumeClaim]
) -> list[PersistentVolumeClaim]:
    """Return the pod's claims that wait for the first consumer, and for who makes their volumes."""
    found = pod_claims(pod, storage, new)
    return found.static(storage) if isinstance(found, PodClaims) else []


def _find(
    pod: Pod, storage: StorageIndex, new: Iterable[PersistentVolumeClaim]
) -> Iterator[_Found | Rejected]:
    """Find the claim of each volume that has one, also if it doesn't exist yet."""
    coming = {claim.metadata.name: claim for claim in new}
    for volume in pod.spec.volumes or ():
        name = claim_name(pod, volume)
        if name is None:
            continue
        claim = storage.get(PersistentVolumeClaim, name, pod.metadata.namespace)
        ephemeral = volume.persistent_volume_claim is None
        if claim is not None:
            yield _Found(claim, new=False, ephemeral=ephemeral)
        elif name in coming:
            yield _Found(with_default_class(coming[name], storage), new=True, ephemeral=ephemeral)
        elif volume.ephemeral is not None:
            spec = volume.ephemeral.volume_claim_template.spec
            meta = ClaimMeta(name=name, namespace=pod.metadata.namespace)
            claim = PersistentVolumeClaim(metadata=meta, spec=spec)
            yield _Found(with_default_class(claim, storage), new=True, ephemeral=True)
        else:
            yield Rejected(f'persistentvolumeclaim "{name}" not found', claim=name)


def _unusable(pod: Pod, found: _Found) -> Rejected | None:
    claim = found.claim
    name = claim.metadata.name
    if claim.status.phase == "Lost":
        text = (
            f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume'
            f' "{claim.spec.volume_name}"'
        )
        return Rejected(text, claim=name)
    if claim.metadata.deletion_timestamp is not None:
        text = f'persistentvolumeclaim "{name}" is being deleted'
        return Rejected(text, claim=name, passing=True)
    if found.ephemeral and not found.new and not _made_for(pod, claim):
        namespace = pod.metadata.namespace
        text = (
            f"PVC {namespace}/{name} was not created for pod {namespace}/{pod.metadata.name}"
            " (pod is not owner)"
        )
        # If an earlier pod of the same name left the claim, Kubernetes deletes it.
        return Rejected(text, claim=name, passing=bool(claim.metadata.owner_references))
    return None


def _made_for(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Return whether a pod owns a claim (`VolumeIsForPod`). A pod without a uid owns none."""
    uid = pod.metadata.uid
    return bool(uid) and any(
        owner.controller and owner.uid == uid for owner in claim.metadata.owner_references or ()
    )


def _sort(claims: list[_Found], storage: StorageIndex) -> PodClaims | Rejected:
    bound: list[BoundClaim] = []
    waiting: list[PersistentVolumeClaim] = []
    provisioning: list[PersistentVolumeClaim] = []
    unbound: Rejected | None = None
    for claim, new, ephemeral in claims:
        volume_name = claim.spec.volume_name
        class_ = storage.get(StorageClass, class_of_claim(claim))
        if volume_name and BIND_COMPLETED in (claim.metadata.annotations or ()):
            volume = storage.get(PersistentVolume, volume_name)
            bound.append(BoundClaim(claim, volume, ephemeral))
        elif class_ is not None and class_.volume_binding_mode == WAIT and not volume_name:
            waiting.append(claim)
        elif new and _provisions(class_):
            provisioning.append(claim)
        else:
            unbound = unbound or Rejected(
                "pod has unbound immediate PersistentVolumeClaims",
                claim=claim.metadata.name,
                passing=bool(volume_name) or _provisions(class_) or _will_be_bound(claim, storage),
            )
    if unbound is not None:
        return unbound
    for pair in bound:
        if pair.volume is None and not pair.ephemeral:
            return Rejected(
                f'persistentvolume "{pair.claim.spec.volume_name}" not found',
                claim=pair.claim.metadata.name,
            )
    return PodClaims(
        bound=tuple(bound),
        waiting=tuple(waiting),
        provisioning=tuple(provisioning),
        one_pod=frozenset(
            found.claim.metadata.name
            for found in claims
            if not found.ephemeral and ONE_POD in (found.claim.spec.access_modes or ())
        ),
        ephemeral=frozenset(it.claim.metadata.name for it in claims if it.ephemeral),
    )


def _provisions(class_: StorageClass | None) -> bool:
    return class_ is not None and class_.provisioner not in ("", NO_PROVISIONER)


def with_default_class(
    claim: PersistentVolumeClaim, storage: StorageIndex
) -> PersistentVolumeClaim:
    """Set the class that the admission plugin DefaultStorageClass will set.

    If several classes are the default, it takes the newest, and we don't predict that one.
    """
    defaults = default_classes(storage)
    if len(defaults) != 1 or not _is_classless(claim):
        return claim
    spec = msgspec.structs.replace(claim.spec, storage_class_name=defaults[0])
    return msgspec.structs.replace(claim, spec=spec)


def _will_be_bound(claim: PersistentVolumeClaim, storage: StorageIndex) -> bool:
    """Return whether a claim will get a default class, as existing ones do too, or a volume."""
    if _is_classless(claim) and default_classes(storage):
        return True
    found = candidates(claim, storage)
    return bool(found.reserved or found.smallest_first)


def _is_classless(claim: PersistentVolumeClaim) -> bool:
    annotated = BETA_STORAGE_CLASS in (claim.metadata.annotations or ())
    return claim.spec.storage_class_name is None and not annotated


def default_classes(storage: StorageIndex) -> list[str]:
    """Return the names of the default StorageClasses."""
    return [
        class_.metadata.name
        for class_ in storage.all(StorageClass)
        if "true" in map((class_.metadata.annotations or {}).get, _IS_DEFAULT)
    ]
