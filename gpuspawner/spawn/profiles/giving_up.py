"""Admission for a page with many profiles, which is not to wait for each of them in vain."""

from gpuspawner.admission.dry_run import Admission, Answer
from gpuspawner.admission.slots import TooManyDryRunsError
from gpuspawner.kube.manifest import Manifest


class GivingUp:
    """Asks until there is once no answer, or no turn; then it says so without asking.

    Args:
        admission: Who is asked.
    """

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._is_away = False
        self._turns_are_taken = False

    async def admit(self, namespace: str, pod: Manifest) -> Answer:
        """As `Admission`."""
        if self._is_away:
            return None
        if self._turns_are_taken:
            raise TooManyDryRunsError
        try:
            admitted = await self._admission.admit(namespace, pod)
        except TooManyDryRunsError:
            self._turns_are_taken = True
            raise
        self._is_away = admitted is None and bool(pod.get("spec"))
        return admitted
