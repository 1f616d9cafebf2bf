"""Read the parts of the administrator's ``profile_list`` that this package needs.

``KubeSpawner.profile_list`` documents the keys (``kubespawner/spawner.py`` of 7.0.0 and 7.1.0).
Values are the administrator's: display names may be HTML, overrides may be functions.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from gpuspawner.offers.shapes import read as read_shape
from gpuspawner.offers.types import ScaleUp

Complete = Sequence[Mapping[str, Any]]
"""Profiles with the slugs and defaults that KubeSpawner gives them."""

WRITTEN_IN = "--unlisted-choice"
"""KubeSpawner's suffix to an option's name if its value is written in instead of chosen."""


@dataclass(frozen=True, slots=True)
class ListedChoice:
    """One of an option's choices.

    Attributes:
        key: Its name in `user_options`.
        name: Its display name, as plain text.
        sets: The traits that it overrides.
    """

    key: object
    name: str
    default: bool
    sets: frozenset[str]


@dataclass(frozen=True, slots=True)
class WriteIn:
    """A field for a value that is not among the choices.

    Attributes:
        pattern: The value has to match it from its beginning; may be empty.
        advice: The administrator's message for other values; may be empty.
    """

    pattern: str
    advice: str


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a profile.

    Attributes:
        name: As in `user_options`.
        choices: May be empty if users can write in a value.
    """

    name: str
    choices: tuple[ListedChoice, ...]
    write_in: WriteIn | None


@dataclass(frozen=True, slots=True)
class Profile:
    """One profile.

    Attributes:
        slug: Its name in `user_options`.
        name: Its display name, as plain text.
        scale_up: Set if the pool of nodes that it selects can grow. KubeSpawner ignores this key.
    """

    slug: str
    name: str
    default: bool
    options: tuple[Option, ...]
    scale_up: ScaleUp | None = None


def read(complete: Complete) -> tuple[Profile, ...]:
    """Read profiles that KubeSpawner has given their slugs and defaults.

    Raises:
        AttributeError, KeyError, TypeError: A profile isn't as KubeSpawner documents it.
        OfferError: Its ``scale_up`` isn't usable.
    """
    return tuple(_profile(profile, number) for number, profile in enumerate(complete))


def without_patterns(complete: Complete) -> list[dict[str, Any]]:
    """Return the profiles without their ``validation_regex``."""
    return [
        {**profile, "profile_options": {n: _without_pattern(it) for n, it in _options(profile)}}
        for profile in complete
    ]


def _without_pattern(option: Mapping[str, Any]) -> dict[str, Any]:
    write_in = dict(option.get("unlisted_choice") or {})
    write_in.pop("validation_regex", None)
    return {**option, "unlisted_choice": write_in}


def _options(profile: Mapping[str, Any]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    return (profile.get("profile_options") or {}).items()


def _profile(profile: Mapping[str, Any], number: int) -> Profile:
    grows, place = profile.get("scale_up"), f"profile_list[{number}].scale_up"
    return Profile(
        slug=profile["slug"],
        name=_text(profile["display_name"]),
        default=bool(profile.get("default")),
        options=tuple(_option(name, option) for name, option in _options(profile)),
        scale_up=None if grows is None else read_shape(grows, ScaleUp, place),
    )


def _option(name: str, option: Mapping[str, Any]) -> Option:
    write_in = option.get("unlisted_choice") or {}
    return Option(
        name=name,
        choices=tuple(_choice(key, it) for key, it in (option.get("choices") or {}).items()),
        write_in=_write_in(write_in) if write_in.get("enabled") else None,
    )


def _choice(key: object, choice: Mapping[str, Any]) -> ListedChoice:
    return ListedChoice(
        key=key,
        name=_text(choice.get("display_name", key)),
        default=bool(choice.get("default")),
        sets=frozenset(choice.get("kubespawner_override") or {}),
    )


def _write_in(write_in: Mapping[str, Any]) -> WriteIn:
    return WriteIn(
        pattern=write_in.get("validation_regex") or "",
        advice=_text(write_in.get("validation_message") or ""),
    )


def _text(html: object) -> str:
    """The plain text of a name that KubeSpawner puts into its page as HTML."""
    return Markup(str(html)).striptags()  # noqa: S704, what is stripped of its tags is text
