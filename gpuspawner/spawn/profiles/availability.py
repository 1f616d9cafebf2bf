"""How it stands with profiles and their choices right now.

The answer is the gates' own: what would be refused is never called free.
"""

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
from gpuspawner.spawn.profiles.profile_list import Choice, Option, Profile

NEVER_DECIDES = frozenset(
    {"args", "cmd", "default_url", "environment", "image", "image_pull_policy", "lifecycle_hooks"}
)
"""Traits that can be overridden without a difference to where the pod fits."""

_REASONS = {Reason.AWAY: State.AWAY, Reason.IMPOSSIBLE: State.ABSENT}
"""What a refusal says of the machines; of all other reasons the machines are busy."""


@dataclass(frozen=True)
class Judged:
    """What was asked for a choice, and the answer.

    Attributes:
        proposal: The pod that it comes to.
        row: How it stands; None where the pod asks for no extended resource.
    """

    proposal: Proposal
    row: Availability | None


@dataclass(frozen=True)
class ProfileAvailability:
    """How it stands with one profile.

    Attributes:
        profile: The profile.
        row: With its defaults; None where there is nothing to tell.
        choices: With each choice that makes a difference, by names of option and choice, all else
            at its default.
    """

    profile: Profile
    row: Availability | None
    choices: Mapping[tuple[str, object], Availability]


Look = Callable[[Chosen], Awaitable[Judged]]
"""Finds out how it stands with a choice."""


async def look_at(profile: Profile, look: Look) -> ProfileAvailability:
    """Find out how it stands with a profile and with those of its choices that matter."""
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
    return ProfileAvailability(profile, usual.row, choices)


def availability(decision: Decision, room: Room | None) -> Availability:
    """How it stands, from the gates' decision.

    Args:
        decision: What a gate would decide.
        room: How much of the extended resource the nodes have where the pod could run.
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
    """Whether it would start, for certain and at once."""
    return isinstance(decision, Start) and not decision.notes


@dataclass(frozen=True)
class Other:
    """What could be had instead.

    Attributes:
        chosen: The choice.
        profile: Its profile's name for people.
        choice: The name of what differs, within the profile that was chosen; else empty.
    """

    chosen: Chosen
    profile: str
    choice: str = ""


def others(chosen: Chosen, profiles: tuple[Profile, ...]) -> Iterator[Other]:
    """All else that can be chosen: first within the same profile, then the other profiles."""
    profile = chosen.profile
    for option in profile.options if profile else ():
        for choice in _deciding(option):
            if profile and chosen.options.get(option.name) != choice.key:
                yield Other(chosen.instead(option, choice), profile.name, choice.name)
    for other in profiles:
        if other != profile:
            yield Other(of_profile(other), other.name)


def chosen_names(chosen: Chosen) -> Iterator[str]:
    """The names of the choices, taken or left at their defaults, that can make a difference."""
    for option in chosen.profile.options if chosen.profile else ():
        given = chosen.options.get(option.name)
        for choice in _deciding(option):
            if choice.key == given if given else choice.default:
                yield choice.name


def _deciding(option: Option) -> tuple[Choice, ...]:
    """The choices, where any of them can make a difference to where the pod fits."""
    makes_a_difference = any(choice.sets - NEVER_DECIDES for choice in option.choices)
    return option.choices if makes_a_difference else ()


def _spec(judged: Judged) -> object:
    """What of the pod decides; pods that cannot be read are all alike."""
    pod = getattr(judged.proposal.subject, "pod", None)
    return pod and pod.spec
