"""The availability of profiles and their choices, from the gates' own decisions."""

from collections.abc import Iterator, Mapping

import msgspec

from gpuspawner.cluster.health import Reading
from gpuspawner.messages import profile_named
from gpuspawner.preflight.availability import Availability, State
from gpuspawner.preflight.decision import (
    Decision,
    Reason,
    Refuse,
    ResourceRoom,
    Start,
    UnknownRules,
    ViewNotLive,
    Wait,
    on_nodes,
)
from gpuspawner.profiles.profile_list import Profile, ProfileOption
from gpuspawner.profiles.profile_options import Chosen, of_profile
from gpuspawner.scaling.outlook import CanScaleUp

_REASONS = {Reason.AWAY: State.AWAY, Reason.IMPOSSIBLE: State.ABSENT}
"""The state for a refusal's reason; for all other reasons it is `State.BUSY`."""


ChoicePlace = tuple[str, object]
"""The name of an option of a profile, and the key of one of its choices."""


class ProfileAvailability(msgspec.Struct, frozen=True):
    """The availability of one profile.

    Attributes:
        row: With its defaults; None if there is nothing to say: it requests no extended resource,
            and fits or may fit.
        choices: With each choice that makes a difference and all other options at their defaults,
            by names of option and choice. None as for `row`.
        images: Of the choices that differ only in their images, which ones need no download.
    """

    row: Availability | None
    choices: Mapping[ChoicePlace, Availability | None]
    images: Mapping[ChoicePlace, bool] = msgspec.field(default_factory=dict)

    @property
    def is_hidden(self) -> bool:
        """Whether policies deny all of it at any time, and their administrator doesn't show it."""
        return all(it is not None and it.is_hidden for it in (self.row, *self.choices.values()))

    @property
    def is_quiet(self) -> bool:
        """Whether there is nothing to say."""
        return not (self.row or any(self.choices.values()) or any(self.images.values()))


def availability(decision: Decision, room: ResourceRoom | None) -> Availability:
    """Return the availability on the nodes that follows from a gate's decision.

    *room* is how much of the extended resource is on the nodes that the pod could run on.
    """
    decision, accelerator = on_nodes(decision), decision.grant.accelerator
    match decision:
        case Wait(scale_up=CanScaleUp()):
            return Availability(accelerator, State.CAN_SCALE_UP, room, decision.scale_up)
        case Wait():
            return Availability(accelerator, State.MAY_SCALE_UP, room, decision.scale_up)
        case Refuse():
            state = _REASONS.get(decision.reason, State.BUSY)
            short = decision.shortage.resource if decision.shortage else ""
            obstacles = decision.obstacles
            return Availability(accelerator, state, room, obstacles=obstacles, short_of=short)
    for note in decision.notes:
        match note:
            case ViewNotLive(Reading()):
                return Availability(accelerator, State.READING)
            case ViewNotLive() | UnknownRules():
                return Availability(accelerator, State.UNKNOWN)
    return Availability(accelerator, State.FREE, room)


def fits_now(decision: Decision) -> bool:
    """Whether a node has room for the pod now, for certain."""
    found = on_nodes(decision)
    return isinstance(found, Start) and not found.notes


class Other(msgspec.Struct, frozen=True):
    """An alternative to a choice.

    Attributes:
        name: Of its profile and, if that is the same, of its choice, as `profile_named` has it.
    """

    chosen: Chosen
    name: str


def others(
    chosen: Chosen, options: tuple[ProfileOption, ...], profiles: tuple[Profile, ...]
) -> Iterator[Other]:
    """Yield all alternatives: first those within the same profile, then the other profiles.

    *options* are those of the chosen profile that make a difference. A profile in which users
    have to write a value is none, since a button can't start it.
    """
    profile = chosen.profile
    for option in options:
        for choice in option.choices:
            if profile and not chosen.has(option, choice):
                named = profile_named(profile.name, choice.name)
                yield Other(chosen.instead(option, choice), named)
    # KubeSpawner finds only the first of several profiles with the same slug.
    by_slug = {other.slug: other for other in reversed(profiles)}
    for other in dict.fromkeys(by_slug[it.slug] for it in profiles):
        usual = of_profile(other)
        if other.slug != chosen.slug and not usual.open:
            yield Other(usual, profile_named(other.name))


def chosen_names(chosen: Chosen, options: tuple[ProfileOption, ...]) -> Iterator[str]:
    """Yield the names of the choices, chosen or default, for *options*."""
    for option in options:
        yield from (choice.name for choice in option.choices if chosen.has(option, choice))
