"""PersistentVolumeClaims that don't exist yet."""

from gpuspawner.scheduling.state import ClusterState
from gpuspawner.scheduling.verdict import Verdict


def waits_for_a_claim(state: ClusterState, namespace: str, verdict: Verdict) -> bool:
    """Whether the verdict rejects the pod because of a PersistentVolumeClaim not yet in view.

    The spawner or an administrator's hook may be about to create it, or may have just created it.
    Nobody can tell yet whether it will be bound.
    """
    rejected = verdict.rejected
    return (
        rejected is not None
        and rejected.claim != ""
        and state.find("PersistentVolumeClaim", namespace, rejected.claim) is None
    )
