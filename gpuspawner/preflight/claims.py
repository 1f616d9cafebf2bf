"""Claims that the spawner is about to make: what admission would fill in, and when to keep quiet.

A claim that names no storage class gets the cluster's default (admission plugin
DefaultStorageClass; annotation and rule in Kubernetes' documentation, "Storage Classes").
"""

from collections.abc import Mapping

from gpuspawner.kube.storage import StorageClass
from gpuspawner.scheduling.state import ClusterState
from gpuspawner.scheduling.verdict import Verdict

Plain = Mapping[str, object]
"""An object as the API writes it, with camelCase names."""

_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"


def with_default_class(state: ClusterState, claim: Plain) -> Plain:
    """The claim as it will be stored, as far as its storage class goes.

    Of several default classes the newest counts, and age is not followed here: the claim then
    stays as it is, which makes its pod's verdict unknown.
    """
    spec, metadata = _mapping(claim, "spec"), _mapping(claim, "metadata")
    names_one = "storageClassName" in spec or _BETA_CLASS in _mapping(metadata, "annotations")
    defaults = [] if names_one else _defaults(state)
    if len(defaults) != 1:
        return claim
    return {**claim, "spec": {**spec, "storageClassName": defaults[0]}}


def waits_for_a_claim(state: ClusterState, namespace: str, verdict: Verdict) -> bool:
    """Whether the pod is kept from all nodes by a claim that does not exist yet.

    The spawner or an administrator's hook may be about to make it, or has made it a moment ago
    without the view having seen it; whether it will be bound nobody can tell before.
    """
    rejected = verdict.rejected
    return (
        rejected is not None
        and rejected.claim != ""
        and state.find("PersistentVolumeClaim", namespace, rejected.claim) is None
    )


def _defaults(state: ClusterState) -> list[str]:
    return [
        name
        for name, found in state.all("StorageClass").items()
        if isinstance(found, StorageClass)
        and (found.metadata.annotations or {}).get(_IS_DEFAULT) == "true"
    ]


def _mapping(plain: Mapping[str, object], key: str) -> Mapping[str, object]:
    found = plain.get(key)
    return found if isinstance(found, Mapping) else {}
