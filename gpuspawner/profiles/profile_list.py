"""Read the parts of the administrator's ``profile_list`` that gpuspawner needs.

``KubeSpawner.profile_list`` documents the keys (``kubespawner/spawner.py`` of 7.0.0 and 7.1.0).
Values are the administrator's: display names may be HTML, overrides may be functions.
"""

import copy
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from markupsafe import Markup
from msgspec.structs import replace

from gpuspawner.compat import kubespawner
from gpuspawner.offers import regexes
from gpuspawner.offers.shapes import read as read_shape
from gpuspawner.offers.types import ScaleUp
from gpuspawner.profiles.override_mistakes import OVERRIDE, parts

Complete = Sequence[Mapping[str, Any]]
"""Profiles with the slugs and defaults that KubeSpawner gives them."""

WRITTEN_IN = "--unlisted-choice"
"""KubeSpawner's suffix to an option's name if its value is written in instead of chosen."""

_NOT_SCHEDULED = frozenset(
    {"args", "cmd", "default_url", "environment", "image", "image_pull_policy", "notebook_dir"}
)
"""Traits of KubeSpawner that change nothing about the nodes on which a pod fits."""


class ListedChoice(msgspec.Struct, frozen=True):
    """One of an option's choices.

    Attributes:
        key: Its name in `user_options`.
        name: As plain text; no other choice of the profile has the same.
        scale_up: As in `Profile`, and before it.
    """

    key: object
    name: str
    default: bool
    scale_up: ScaleUp | None = None


class WriteIn(msgspec.Struct, frozen=True):
    """A field for a value that is not among the choices.

    Attributes:
        label: Its display name, as plain text; may be empty.
        pattern: The value has to match it from its beginning; may be empty.
        advice: The administrator's message for other values; may be empty.
        may_move: Whether the value may change on which nodes the pod fits.
    """

    label: str
    pattern: str
    advice: str
    may_move: bool


class ProfileOption(msgspec.Struct, frozen=True):
    """An option of a profile.

    Attributes:
        name: As in `user_options`.
        label: Its display name, as plain text.
        choices: May be empty if users can write in a value.
    """

    name: str
    label: str
    choices: tuple[ListedChoice, ...]
    write_in: WriteIn | None


class Profile(msgspec.Struct, frozen=True):
    """One profile.

    Attributes:
        slug: Its name in `user_options`.
        name: As plain text; no other profile has the same.
        scale_up: Set if the pool of nodes that its pod selects can grow. KubeSpawner ignores this
            key.
    """

    slug: str
    name: str
    default: bool
    options: tuple[ProfileOption, ...]
    scale_up: ScaleUp | None = None


def read(complete: Complete) -> tuple[Profile, ...]:
    """Read profiles that KubeSpawner has given their slugs and defaults.

    They get names that messages can use: no two are equal.

    Raises:
        AttributeError, KeyError, TypeError: A profile isn't as KubeSpawner documents it.
        OfferError: Its ``scale_up`` isn't usable.
    """
    profiles = [_profile(profile, number) for number, profile in enumerate(complete)]
    used = Counter(profile.name for profile in profiles)
    return tuple(
        replace(
            profile,
            name=f"{profile.name} ({profile.slug})" if used[profile.name] > 1 else profile.name,
            options=_choices_told_apart(profile.options),
        )
        for profile in profiles
    )


def _choices_told_apart(options: Sequence[ProfileOption]) -> tuple[ProfileOption, ...]:
    """Add the key to names that an option uses twice, and the label to those in several options."""
    names = [Counter(choice.name for choice in option.choices) for option in options]
    options_with = Counter(name for used in names for name in used)

    def apart(option: ProfileOption, used: Counter[str], choice: ListedChoice) -> ListedChoice:
        label = f"{option.label}: " if options_with[choice.name] > 1 else ""
        key = f" ({choice.key})" if used[choice.name] > 1 else ""
        return replace(choice, name=f"{label}{choice.name}{key}")

    return tuple(
        replace(option, choices=tuple(apart(option, used, it) for it in option.choices))
        for option, used in zip(options, names, strict=True)
    )


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
    place = f"profile_list[{number}]"
    return Profile(
        slug=profile["slug"],
        name=text(profile["display_name"]),
        default=bool(profile.get("default")),
        options=tuple(_option(name, option, place) for name, option in _options(profile)),
        scale_up=_scale_up(profile, place),
    )


def _scale_up(entry: Mapping[str, Any], place: str) -> ScaleUp | None:
    grows = entry.get("scale_up")
    return None if grows is None else read_shape(grows, ScaleUp, f"{place}.scale_up")


def _option(name: str, option: Mapping[str, Any], place: str) -> ProfileOption:
    inside = f"{place}.profile_options[{name!r}].choices"
    write_in = option.get("unlisted_choice") or {}
    choices = option.get("choices") or {}
    # As KubeSpawner, which takes the first if several are marked.
    default = next((key for key, it in choices.items() if it.get("default")), None)
    return ProfileOption(
        name=name,
        label=text(option.get("display_name", name)),
        choices=tuple(
            _choice(key, it, default, f"{inside}[{key!r}]") for key, it in choices.items()
        ),
        write_in=_write_in(write_in) if write_in.get("enabled") else None,
    )


def _choice(key: object, choice: Mapping[str, Any], default: object, place: str) -> ListedChoice:
    return ListedChoice(
        key=key,
        name=text(choice.get("display_name", key)),
        default=key == default,
        scale_up=_scale_up(choice, place),
    )


def _write_in(write_in: Mapping[str, Any]) -> WriteIn:
    regex = write_in.get("validation_regex") or ""
    is_compiled = isinstance(regex, re.Pattern) and isinstance(regex.pattern, str)
    return WriteIn(
        label=text(write_in.get("display_name") or ""),
        pattern=regexes.scoped(regex) if is_compiled else regex,  # anything, until it is used
        advice=text(write_in.get("validation_message") or ""),
        may_move=not _NOT_SCHEDULED.issuperset(write_in.get("kubespawner_override") or ()),
    )


def text(html: object) -> str:
    """The plain text of a name that KubeSpawner puts into its page as HTML."""
    return Markup(str(html)).striptags()  # noqa: S704, what is stripped of its tags is text


_MOST_KEPT = 16
"""Lists; a function may return another one for each group of users."""


class Listed(msgspec.Struct, frozen=True, eq=False):
    """The profiles at one moment, as KubeSpawner uses them and as gpuspawner does.

    Attributes:
        has_functions: Whether overrides are computed when a profile is loaded.
    """

    complete: Complete
    profiles: tuple[Profile, ...]
    has_functions: bool
    has_names: bool

    def hides_names(self, spawner: object) -> bool:
        """Whether names in a spawner's settings may be missing in its default profile's pod."""
        default = [it for it in self.complete if it.get("default")]
        replaced = {name for _, it in parts(default) for name in it.get(OVERRIDE) or ()}
        return any(_any_part(_has_brace, getattr(spawner, name, None)) for name in replaced)


class Lists:
    """The last lists; equal ones give the same `Listed`."""

    def __init__(self) -> None:
        self._kept: deque[tuple[Any, Listed]] = deque(maxlen=_MOST_KEPT)

    def read(self, spawner: object, given: Any) -> Listed:
        """Read a list.

        Raises:
            Exception: It isn't as KubeSpawner documents it.
        """
        for kept, listed in self._kept:
            if kept == given and _orders(kept) == _orders(given):
                return listed
        complete = kubespawner.complete_profiles(spawner, given)
        overrides = (part.get(OVERRIDE) for _, part in parts(complete))
        has_names = any(_any_part(_has_brace, it) for it in overrides)
        listed = Listed(complete, read(complete), _any_part(callable, complete), has_names)
        self._kept.append((copy.deepcopy(given), listed))
        return listed


def _orders(given: Any) -> list[list[tuple[str, list[str]]]]:
    """Return the orders of options and choices: KubeSpawner's default is the first choice."""
    options = (list((it.get("profile_options") or {}).items()) for it in given or ())
    return [[(name, list(it.get("choices") or ())) for name, it in its] for its in options]


def _any_part(holds: Callable[[object], bool], value: object) -> bool:
    """Whether this holds for any value in mappings and lists, however deep."""
    if isinstance(value, Mapping):
        return any(_any_part(holds, it) for it in value.values())
    if isinstance(value, list | tuple):
        return any(_any_part(holds, it) for it in value)
    return holds(value)


def _has_brace(value: object) -> bool:
    return isinstance(value, str) and "{" in value
