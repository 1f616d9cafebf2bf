"""Admission for a page with many profiles: it stops asking after the first failure."""

from gpuspawner.admission.dry_run import Admission, Answer
from gpuspawner.admission.dry_runs import TooManyDryRunsError
from gpuspawner.kube.objects import Manifest


class GivingUp:
    """Asks until the first missing answer or `TooManyDryRunsError`; then repeats that result."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._is_unanswered = False
        self._has_no_slot = False

    async def admit(self, namespace: str, pod: Manifest) -> Answer:
        """As `Admission`."""
        if self._is_unanswered:
            return None
        if self._has_no_slot:
            raise TooManyDryRunsError
        try:
            admitted = await self._admission.admit(namespace, pod)
        except TooManyDryRunsError:
            self._has_no_slot = True
            raise
        self._is_unanswered = admitted is None and bool(pod.get("spec"))
        return admitted
