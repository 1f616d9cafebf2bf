"""Mistakes in profiles, and in what else sets traits: KubeSpawner finds them late, or never."""

import copy
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import msgspec
from traitlets import TraitError, TraitType

from gpuspawner import traits
from gpuspawner.compat import kubespawner, pods, sample_pod
from gpuspawner.compat.overrides import overridden
from gpuspawner.kube.objects import Undecodable, convert, mapping
from gpuspawner.kube.quoting import did_you_mean, nearest
from gpuspawner.offers import regexes

OVERRIDE = "kubespawner_override"
_KEYS = ("display_name", "description", "slug", "default", "profile_options", OVERRIDE, "scale_up")


class Slip(msgspec.Struct, frozen=True):
    """A slip, as a sentence; it is fatal if no server can start with it."""

    text: str
    is_fatal: bool


def parts(listed: object) -> Iterator[tuple[str, Mapping[Any, Any]]]:
    """Yield each profile and each of its choices, with the profile's place."""
    for place, profile in _profiles(listed):
        yield place, profile
        for option in _options(profile):
            for choice in mapping(option.get("choices")).values():
                yield place, mapping(choice)


def _profiles(listed: object) -> Iterator[tuple[str, Mapping[Any, Any]]]:
    given = kubespawner.as_list(listed)
    for number, profile in enumerate(given if isinstance(given, list | tuple) else ()):
        yield f"KubeSpawner.profile_list[{number}]", mapping(profile)


def _options(profile: Mapping[Any, Any]) -> Iterator[Mapping[Any, Any]]:
    yield from map(mapping, mapping(profile.get("profile_options")).values())


def of_profiles(listed: object, settings: Any) -> Iterator[Slip]:
    """Yield the slips of a profile list that isn't a function.

    *settings* have KubeSpawner's traits, and aren't changed.
    """
    for place, profile in _profiles(listed):
        yield from _of_part(place, profile, settings)
        loaded = _loaded(profile, settings)
        for option in _options(profile):
            for choice in mapping(option.get("choices")).values():
                yield from _of_part(place, mapping(choice), loaded)
            written = mapping(option.get("unlisted_choice"))
            if written.get("enabled"):  # its values are known when a user writes one in
                yield from _of_shape(place, written)
                yield from _misspelt(place, mapping(written.get(OVERRIDE)), settings)
                yield from _of_regex(place, written.get("validation_regex") or "")
    yield from _same_slugs(listed)


def _of_part(place: str, part: Mapping[Any, Any], settings: Any) -> Iterator[Slip]:
    for key in map(str, part):
        if key not in _KEYS and settings.has_trait(key):
            yield Slip(f"{place} has {key} beside {OVERRIDE}, where it does nothing", False)
        elif key not in _KEYS and nearest(key, _KEYS):
            yield Slip(f"{place} has {key}, which does nothing{did_you_mean(key, _KEYS)}", False)
    yield from _of_shape(place, part)
    yield from of_override(place, mapping(part.get(OVERRIDE)), settings)


def _loaded(profile: Mapping[Any, Any], settings: Any) -> Any:
    """Return the settings that a profile's choices change; what can't be set is its own slip."""
    loaded = copy.copy(settings)
    for name, value in _checked(mapping(profile.get(OVERRIDE))).items():
        if settings.has_trait(name):
            with suppress(Exception):
                setattr(loaded, name, overridden(getattr(loaded, name), value))
    return loaded


def _same_slugs(listed: object) -> Iterator[Slip]:
    """KubeSpawner finds the first profile with a slug; equal names give equal slugs."""
    try:
        complete = kubespawner.complete_profiles(None, kubespawner.as_list(listed))
    except (AttributeError, KeyError, TypeError):  # nobody can choose any, which others say
        return
    places: dict[str, str] = {}
    for place, profile in _profiles(complete):
        first = places.setdefault(str(profile["slug"]), place)
        if first != place:
            yield Slip(f"{place} has the slug of {first}, so nobody can choose it", False)


def _of_shape(place: str, part: Mapping[Any, Any]) -> Iterator[Slip]:
    """KubeSpawner fails at null, too, as YAML reads a key whose lines are commented out."""
    if not isinstance(part.get(OVERRIDE, {}), Mapping):
        yield Slip(f"{place}.{OVERRIDE}: write a dictionary, or leave it out", True)


def _of_regex(place: str, given: Any) -> Iterator[Slip]:
    try:
        regexes.check(getattr(given, "pattern", given))
    except re.error as error:
        text = f"{place} has a validation_regex that can't be read: {error}, so users can't write"
        yield Slip(f"{text} in a value", False)


def of_override(place: str, override: Mapping[Any, Any], settings: Any) -> Iterator[Slip]:
    """Yield the slips of what a profile, a choice or a group sets."""
    yield from _misspelt(place, override, settings)
    given = _checked(override)
    probe = copy.copy(settings)
    for name, value in given.items():
        if settings.has_trait(name) and (error := _error(probe, name, value)):
            yield Slip(f"{place}.{name}: {error}", True)
            return
    problem = _problem(settings, given)
    if problem and not _problem(settings, {}):
        yield Slip(f"{place}: no pod can be made of these settings: {problem}", True)


def _misspelt(place: str, override: Mapping[Any, Any], settings: Any) -> Iterator[Slip]:
    for name in _checked(override):
        if settings.has_trait(name) or name in settings.attributes:
            continue
        if hint := did_you_mean(name, settings.trait_names()):
            yield Slip(f"{place} sets {name}, but KubeSpawner has no such trait{hint}", False)


def _checked(override: Mapping[Any, Any]) -> dict[str, Any]:
    """Leave out what needs a user, and names of ours: an administrator's code may have any name."""
    ours = {name for name, it in vars(traits).items() if isinstance(it, TraitType)}
    return {str(it): v for it, v in override.items() if not callable(v) and it not in ours}


def _problem(settings: Any, given: Mapping[Any, Any]) -> str:
    try:
        pod = convert("Pod", pods.plain(sample_pod.make(settings, given)))
    except Exception as error:  # noqa: BLE001, the values are an administrator's
        return repr(error)
    return pod.problem if isinstance(pod, Undecodable) else ""


def _error(probe: Any, name: str, value: object) -> str:
    try:
        whole = overridden(getattr(probe, name), value)
        setattr(probe, name, whole)
    except TraitError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001, an administrator's class may look at each value
        return repr(error)
    if name in sample_pod.LISTS and isinstance(whole, list | Mapping):
        listed = whole.values() if isinstance(whole, Mapping) else whole
        if not all(isinstance(it, Mapping) or pods.is_model(it) for it in listed):
            return "write a list of dictionaries"
    if name == "environment":
        for key, it in mapping(value).items():
            if isinstance(it, int | float | list):
                return f"the value of {key} isn't text: write it in quotes"
    return ""
