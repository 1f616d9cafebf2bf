"""Results that hold until something changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kube.caches import KeptFor, Recent, UntilChanged
from tests.unit.makers.clocks import Clock


def test_a_result_is_found_by_any_of_its_keys_in_its_version_only() -> None:
    kept = UntilChanged[str](most=2)

    assert kept.keep(1, "shared", "free") == "free"

    assert kept.find(1, "alone", "shared") == "free"
    assert kept.find(1, "alone") is None
    assert kept.find(2, "shared") is None

    kept.keep(2, "b", "busy")

    assert (kept.find(2, "alone"), kept.find(2, "b"), kept.find(1, "alone")) == (None, "busy", None)


def test_there_are_never_more_results_than_allowed() -> None:
    kept = UntilChanged[int](most=2)

    for number in range(5):
        kept.keep(1, number, number)
        assert sum(kept.find(1, it) is not None for it in range(5)) <= 2
        assert kept.find(1, number) == number


def test_a_result_is_made_once_in_a_version_even_if_it_is_none() -> None:
    kept, made = UntilChanged[None](), []

    for version, key in ((1, "a"), (1, "a"), (1, "b"), (1, "a"), (2, "a"), (2, "a")):
        assert kept.of(version, key, lambda it=(version, key): made.append(it)) is None

    assert made == [(1, "a"), (1, "b"), (2, "a")]


@given(st.lists(st.integers(0, 9)), st.integers(1, 5))
def test_only_what_was_set_last_is_kept(keys: list[int], most: int) -> None:
    kept = Recent[int, int](most)
    for at, key in enumerate(keys):
        kept[key] = at

    last = list(dict.fromkeys(reversed(keys)))[:most]
    assert list(reversed(kept)) == last
    assert all(keys[at] == key for key, at in kept.items())


def test_what_is_read_can_be_kept_for_longer() -> None:
    kept = Recent[str, int](2)
    kept["a"], kept["b"] = 1, 2
    kept.move_to_end("a")
    kept["c"] = 3

    assert kept == {"a": 1, "c": 3}


def test_what_is_asked_for_is_made_once_and_kept_for_longer() -> None:
    kept = Recent[str, int](2)
    made = iter(range(9))
    asked = [kept.of(key, lambda: next(made)) for key in "abaca"]

    assert asked == [0, 1, 0, 2, 0]
    assert kept == {"c": 2, "a": 0}


def test_what_is_kept_for_some_seconds_is_found_for_so_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gpuspawner.kube.caches.time", clock := Clock())
    kept = KeptFor[str, int](60, most=2)

    assert kept.keep("a", 1) == 1
    clock.now += 59
    assert (kept.find("a"), kept.find("b")) == (1, None)
    kept.keep("b", 2)
    clock.now += 1
    assert (kept.find("a"), kept.find("b")) == (None, 2)
    kept.keep("c", 3)
    kept.keep("d", 4)
    assert [kept.find(it) for it in "bcd"] == [None, 3, 4]
