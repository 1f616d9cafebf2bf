"""Which lists of profiles are the same."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from gpuspawner.profiles.listing import Lists


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
