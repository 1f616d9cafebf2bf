"""Slips in profiles, and in what else sets traits: KubeSpawner finds them at a start, or never."""

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from traitlets import TraitError

from gpuspawner import traits
from gpuspawner.compat import pods, sample_pod
from gpuspawner.kube.objects import Undecodable, convert, mapping
from gpuspawner.kube.quoting import did_you_mean, nearest

OVERRIDE = "kubespawner_override"
_KEYS = ("display_name", "description", "slug", "default", "profile_options", OVERRIDE, "scale_up")


class Slip(msgspec.Struct, frozen=True):
    """A slip, as a sentence; it is fatal if no server can start with it."""

    text: str
    is_fatal: bool


def parts(listed: object) -> Iterator[tuple[str, Mapping[Any, Any]]]:
    """Yield each profile and each of its choices, with the profile's place."""
    given = list(listed.values()) if isinstance(listed, Mapping) else listed  # KubeSpawner 7.1
    for number, profile in enumerate(given if isinstance(given, list | tuple) else ()):
        place = f"KubeSpawner.profile_list[{number}]"
        yield place, mapping(profile)
        for option in mapping(mapping(profile).get("profile_options")).values():
            for choice in mapping(mapping(option).get("choices")).values():
                yield place, mapping(choice)


def of_profiles(listed: object, settings: Any) -> Iterator[Slip]:
    """Yield the slips of a profile list that isn't a function.

    *settings* have KubeSpawner's traits, and aren't changed.
    """
    for place, part in parts(listed):
        for key in map(str, part):
            if key not in _KEYS and settings.has_trait(key):
                yield Slip(f"{place} has {key} beside {OVERRIDE}, where it does nothing", False)
            elif key not in _KEYS and nearest(key, _KEYS):
                yield Slip(
                    f"{place} has {key}, which does nothing{did_you_mean(key, _KEYS)}", False
                )
        yield from of_override(place, mapping(part.get(OVERRIDE)), settings)


def of_override(place: str, override: Mapping[Any, Any], settings: Any) -> Iterator[Slip]:
    """Yield the slips of what a profile, a choice or a group sets."""
    # An attribute of the administrator's own code may have any name, that of a trait of ours too.
    ours = traits.__all__
    given = {str(it): v for it, v in override.items() if not callable(v) and it not in ours}
    probe = copy.copy(settings)
    for name, value in given.items():
        if not settings.has_trait(name):
            hint = did_you_mean(name, settings.trait_names())
            if hint and name not in settings.attributes:
                yield Slip(f"{place} sets {name}, but KubeSpawner has no such trait{hint}", False)
        elif error := _error(probe, name, value):
            yield Slip(f"{place}.{name}: {error}", True)
            return
    problem = _problem(settings, given)
    if problem and not _problem(settings, {}):
        yield Slip(f"{place}: no pod can be made of these settings: {problem}", True)


def _problem(settings: Any, given: Mapping[Any, Any]) -> str:
    try:
        pod = convert("Pod", pods.plain(sample_pod.make(settings, given)))
    except Exception as error:  # noqa: BLE001, the values are an administrator's
        return repr(error)
    return pod.problem if isinstance(pod, Undecodable) else ""


def _error(probe: Any, name: str, value: object) -> str:
    try:
        setattr(probe, name, value)
    except TraitError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001, an administrator's class may look at each value
        return repr(error)
    if name in sample_pod.LISTS and isinstance(value, list | Mapping):
        listed = value.values() if isinstance(value, Mapping) else value
        if not all(isinstance(it, Mapping) or pods.is_model(it) for it in listed):
            return "write a list of dictionaries"
    if name == "environment":
        for key, it in mapping(value).items():
            if isinstance(it, int | float | list):
                return f"the value of {key} isn't text: write it in quotes"
    return ""
