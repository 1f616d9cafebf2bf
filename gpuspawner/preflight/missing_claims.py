"""Claims that are about to be made: when to keep quiet about them."""

from gpuspawner.scheduling.state import ClusterState
from gpuspawner.scheduling.verdict import Verdict


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
