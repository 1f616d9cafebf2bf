"""The availability of profiles and their choices, from the gates' own decisions."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass

from gpuspawner.availability import Availability, State
from gpuspawner.cluster.health import Reading
from gpuspawner.preflight.decision import (
    Decision,
    Reason,
    Refuse,
    Room,
    Start,
    UnknownRules,
    ViewNotLive,
    Wait,
)
from gpuspawner.preflight.proposal import Proposal
from gpuspawner.spawn.profiles.choosing import Chosen, of_profile
from gpuspawner.spawn.profiles.profile_list import ListedChoice, Option, Profile

NEVER_DECIDES = frozenset(
    {"args", "cmd", "default_url", "environment", "image", "image_pull_policy", "lifecycle_hooks"}
)
"""Traits whose overrides never change where the pod fits."""

_REASONS = {Reason.AWAY: State.AWAY, Reason.IMPOSSIBLE: State.ABSENT}
"""The state for a refusal's reason; for all other reasons it is `State.BUSY`."""


@dataclass(frozen=True)
class Judged:
    """The proposal of a choice, and its availability: None if it requests no extended resource."""

    proposal: Proposal
    row: Availability | None


@dataclass(frozen=True)
class ProfileAvailability:
    """The availability of one profile.

    Attributes:
        row: With its defaults; None if the pod requests no extended resource.
        choices: With each choice that makes a difference and all other options at their defaults,
            by names of option and choice.
    """

    row: Availability | None
    choices: Mapping[tuple[str, object], Availability]


Look = Callable[[Chosen], Awaitable[Judged]]
"""Finds out the availability of a choice."""


async def look_at(profile: Profile, look: Look) -> ProfileAvailability:
    """Find out the availability of a profile, and of its choices that make a difference."""
    default = of_profile(profile)
    usual = await look(default)
    choices: dict[tuple[str, object], Availability] = {}
    for option in profile.options:
        judged = {
            choice.key: usual if choice.default else await look(default.instead(option, choice))
            for choice in _deciding(option)
        }
        specs = [_spec(it) for it in judged.values()]
        if any(spec != specs[0] for spec in specs):
            choices |= {(option.name, key): it.row for key, it in judged.items() if it.row}
    return ProfileAvailability(usual.row, choices)


def availability(decision: Decision, room: Room | None) -> Availability:
    """Return the availability that follows from a gate's decision.

    *room* is how much of the extended resource is on the nodes that the pod could run on.
    """
    accelerator = decision.grant.accelerator
    match decision:
        case Wait():
            return Availability(accelerator, State.CAN_SCALE_UP, room, decision.scale_up)
        case Refuse():
            return Availability(accelerator, _REASONS.get(decision.reason, State.BUSY), room)
    for note in decision.notes:
        match note:
            case ViewNotLive(Reading()):
                return Availability(accelerator, State.READING)
            case ViewNotLive() | UnknownRules():
                return Availability(accelerator, State.UNKNOWN)
    return Availability(accelerator, State.FREE, room)


def fits_now(decision: Decision) -> bool:
    """Whether the pod fits now, for certain."""
    return isinstance(decision, Start) and not decision.notes


@dataclass(frozen=True)
class Other:
    """An alternative to a choice: names of its profile and, if that is the same, its choice."""

    chosen: Chosen
    names: tuple[str, ...]


def others(chosen: Chosen, profiles: tuple[Profile, ...]) -> Iterator[Other]:
    """Yield all alternatives: first those within the same profile, then the other profiles."""
    profile = chosen.profile
    for option in profile.options if profile else ():
        for choice in _deciding(option):
            if profile and chosen.options.get(option.name) != choice.key:
                yield Other(chosen.instead(option, choice), (profile.name, choice.name))
    for other in profiles:
        if other != profile:
            yield Other(of_profile(other), (other.name,))


def chosen_names(chosen: Chosen) -> Iterator[str]:
    """Yield the names of the chosen or default choices that can make a difference."""
    for option in chosen.profile.options if chosen.profile else ():
        given = chosen.options.get(option.name)
        for choice in _deciding(option):
            if choice.key == given if given else choice.default:
                yield choice.name


def _deciding(option: Option) -> tuple[ListedChoice, ...]:
    """The option's choices if any of them can change where the pod fits, else none."""
    makes_a_difference = any(choice.sets - NEVER_DECIDES for choice in option.choices)
    return option.choices if makes_a_difference else ()


def _spec(judged: Judged) -> object:
    pod = judged.proposal.decoded
    return pod and pod.spec
