"""A server that is chosen from KubeSpawner's profiles, and what can be had instead."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from gpuspawner import messages
from gpuspawner.gates.source import Choice
from gpuspawner.messages import Message, OnForm, ProfileButton
from gpuspawner.preflight.decision import Refuse
from gpuspawner.preflight.dry_run import Admission
from gpuspawner.profiles import availability
from gpuspawner.profiles.availability import Other
from gpuspawner.profiles.choosing import Chosen
from gpuspawner.profiles.giving_up import GivingUp
from gpuspawner.profiles.listing import Listed
from gpuspawner.profiles.looking import Looking

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

    async def explain(self, refusal: Refuse, admission: Admission) -> tuple[Message, OnForm]:
        """As `Choice.explain`."""
        profile = self.chosen.profile
        if profile is None:
            message = messages.profile_refused(refusal, "", ())
            return message, OnForm(message)
        looking = await self.looking(self.listed)
        deciding = await availability.deciding(profile, looking.shape)
        choices = availability.chosen_names(self.chosen, deciding)
        name = messages.profile_named(profile.name, *choices)
        others = availability.others(self.chosen, deciding, self.listed.profiles)
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
