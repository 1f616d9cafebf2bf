"""Admission for a page with many profiles: it stops asking after the first failure."""

import asyncio

from gpuspawner.kube.objects import Manifest
from gpuspawner.preflight.dry_run import Admission, Answer
from gpuspawner.preflight.dry_runs import TooManyDryRunsError


class GivingUp:
    """Asks until the first missing answer or `TooManyDryRunsError`; then repeats that result.

    Args:
        admission: What to ask.
        seconds: How long all answers together may take; a later one is `TooManyDryRunsError`.
    """

    def __init__(self, admission: Admission, seconds: float | None = None) -> None:
        self._admission = admission
        self._seconds = seconds
        self._until: float | None = None
        self._is_unanswered = False
        self._has_no_slot = False

    async def admit(self, namespace: str, pod: Manifest) -> Answer:
        """As `Admission`."""
        if self._is_unanswered:
            return None
        if self._has_no_slot:
            raise TooManyDryRunsError
        try:
            async with asyncio.timeout_at(self._deadline()):
                admitted = await self._admission.admit(namespace, pod)
        except (TooManyDryRunsError, TimeoutError):
            self._has_no_slot = True
            raise TooManyDryRunsError from None
        self._is_unanswered = admitted is None and bool(pod.get("spec"))
        return admitted

    def _deadline(self) -> float | None:
        """Return when the time is up, counted from the first question."""
        if self._until is None and self._seconds is not None:
            self._until = asyncio.get_running_loop().time() + self._seconds
        return self._until
