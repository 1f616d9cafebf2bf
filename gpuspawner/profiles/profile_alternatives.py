"""A server that is chosen from KubeSpawner's profiles, and what can be had instead."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from gpuspawner import messages
from gpuspawner.kube.objects import Manifest
from gpuspawner.messages import Message, OnForm, ProfileButton
from gpuspawner.preflight.decision import Refuse
from gpuspawner.preflight.dry_runs import Admission, Answer, TooManyDryRunsError
from gpuspawner.profiles import profile_availability
from gpuspawner.profiles.page_availability import Looking
from gpuspawner.profiles.profile_availability import Other
from gpuspawner.profiles.profile_list import Listed
from gpuspawner.profiles.profile_options import Chosen
from gpuspawner.start.source import Choice

# Admission for a page with many profiles: it stops asking after the first failure.


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


_MOST_INSTEAD = 3
# The refusal shouldn't take long, and each try asks the API server once.
_MOST_TRIED = 12

LookingAt = Callable[[Listed], Awaitable[Looking]]
"""Begins to find out what other choices of a list would get, for a refusal."""


@dataclass(frozen=True, kw_only=True)
class ProfileChoice(Choice):
    """A profile and the choices within it, which KubeSpawner itself loads into the pod."""

    chosen: Chosen
    listed: Listed = field(repr=False)
    looking: LookingAt = field(repr=False)

    @property
    def profile(self) -> str:
        """As `Choice.profile`."""
        return self.chosen.slug

    @property
    def display_names(self) -> Mapping[str, str]:
        """As `Choice.display_names`."""
        profile = self.chosen.profile
        return {self.chosen.slug: profile.name} if profile is not None else {}

    async def explain(self, refusal: Refuse, admission: Admission) -> tuple[Message, OnForm]:
        """As `Choice.explain`."""
        profile = self.chosen.profile
        if profile is None:
            message = messages.profile_refused(refusal, "", ())
            return message, OnForm(message)
        looking = await self.looking(self.listed)
        deciding = await looking.deciding(profile)
        choices = profile_availability.chosen_names(self.chosen, deciding)
        name = messages.profile_named(profile.name, *choices)
        others = profile_availability.others(self.chosen, deciding, self.listed.profiles)
        fits = partial(looking.fits_instead, refusal, GivingUp(admission))
        instead = await _instead(self.chosen, others, fits)
        message = messages.profile_refused(refusal, name, [it.name for it in instead])
        buttons = [ProfileButton.of(it.name, it.chosen.options) for it in instead]
        if not buttons:
            return message, OnForm(message)
        above = messages.profile_refused_above_buttons(refusal, name)
        return message, OnForm(above, profiles=tuple(buttons))


async def _instead(
    chosen: Chosen, others: Iterable[Other], fits: Callable[[Chosen], Awaitable[bool]]
) -> list[Other]:
    """Return alternatives that fit now, nearest first; at most one of the same profile."""
    found: list[Other] = []
    for other in islice(others, _MOST_TRIED):
        if len(found) == _MOST_INSTEAD:
            break
        is_one_too_many = other.chosen.profile == chosen.profile and found
        if not is_one_too_many and await fits(other.chosen):
            found.append(other)
    return found
