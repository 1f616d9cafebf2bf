"""Whether users' home directories can get their volumes."""

from collections.abc import Iterable, Iterator, Mapping

from gpuspawner.doctor.servers import Tried
from gpuspawner.kube.quoting import did_you_mean
from gpuspawner.kube.storage import StorageClass
from gpuspawner.messages.administrators import Finding, error, warning
from gpuspawner.scheduling.pod_claims import WAIT, default_classes
from gpuspawner.scheduling.state import ClusterState


def check(state: ClusterState, tried: list[Tried]) -> Iterator[Finding]:
    """Check the StorageClass of the claims that KubeSpawner creates."""
    if not state.known("StorageClass"):
        return
    for wanted in dict.fromkeys(name for it in tried for name in _wanted(it)):
        used = _used(state, wanted)
        if not used:
            yield _missing(wanted, state.all("StorageClass"))
        elif used[0].volume_binding_mode != WAIT:
            yield warning(
                "storage-immediate",
                f"The StorageClass {used[0].metadata.name} makes volumes before the scheduler "
                "chooses a node, so the first server of each user starts unchecked.",
                f"Use a StorageClass with volumeBindingMode: {WAIT}.",
            )


def is_without_class(state: ClusterState, tried: Tried) -> bool:
    """Whether a class that the server's home directory needs doesn't exist."""
    return state.known("StorageClass") and any(not _used(state, it) for it in _wanted(tried))


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
