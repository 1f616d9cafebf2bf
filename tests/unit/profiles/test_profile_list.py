"""What gpuspawner reads of a list: unambiguous names, and KubeSpawner's defaults."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from gpuspawner.profiles.profile_availability import others
from gpuspawner.profiles.profile_list import Lists, read
from gpuspawner.profiles.profile_options import of_profile


def choices(*names: str) -> dict[str, Any]:
    return {f"c{number}": {"display_name": name} for number, name in enumerate(names)}


def test_equal_names_of_profiles_get_their_slugs() -> None:
    listed = [{"display_name": "<b>CPU</b> only", "slug": slug} for slug in ("a", "b")]

    profiles = read([*listed, {"display_name": "GPU", "slug": "c"}])

    assert [it.name for it in profiles] == ["CPU only (a)", "CPU only (b)", "GPU"]


def test_equal_names_of_choices_get_the_option_s_label_or_their_keys() -> None:
    options = {
        "gpus": {"display_name": "GPUs", "choices": choices("1", "2")},
        "cpus": {"choices": choices("2", "4", "4")},
    }

    [profile] = read([{"display_name": "A", "slug": "a", "profile_options": options}])

    gpus, cpus = profile.options
    assert [it.name for it in gpus.choices] == ["1", "GPUs: 2"]
    assert [it.name for it in cpus.choices] == ["cpus: 2", "4 (c1)", "4 (c2)"]


def test_only_the_first_profile_with_a_slug_is_an_alternative() -> None:
    """KubeSpawner finds no other."""
    profiles = read([{"display_name": name, "slug": slug} for name, slug in ("Aa", "Bb", "Cb")])

    assert [it.name for it in others(of_profile(profiles[0]), (), profiles)] == ["“B”"]


def test_of_several_defaults_the_first_counts_as_in_kubespawner() -> None:
    sizes = {key: {"display_name": key, "default": key != "s"} for key in ("s", "m", "l")}
    option = {"size": {"choices": sizes}}

    [profile] = read([{"display_name": "A", "slug": "a", "profile_options": option}])

    assert [it.default for it in profile.options[0].choices] == [False, True, False]


def listing(*keys: str) -> list[dict[str, Any]]:
    """Return one profile with these choices, in this order."""
    choices = {key: {"display_name": key, "kubespawner_override": {}} for key in keys}
    option = {"display_name": "Size", "choices": choices}
    return [{"display_name": "Lab", "profile_options": {"size": option}}]


def test_equal_lists_are_read_once() -> None:
    lists, spawner = Lists(), SimpleNamespace()

    first = lists.read(spawner, listing("small", "big"))

    assert lists.read(spawner, listing("small", "big")) is first


def test_lists_in_another_order_are_others_because_the_first_choice_is_the_default() -> None:
    lists, spawner = Lists(), SimpleNamespace()

    for keys in (("small", "big"), ("big", "small")):
        (profile,) = lists.read(spawner, listing(*keys)).profiles
        (option,) = profile.options
        assert [it.key for it in option.choices if it.default] == [keys[0]]


def test_a_function_that_returns_nothing_lists_no_profiles_each_time() -> None:
    lists = Lists()

    assert [lists.read(SimpleNamespace(), None).profiles for _ in range(2)] == [(), ()]
