"""What is kept of the last few."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kube.recent import KeptFor, Recent
from tests.unit.makers.clocks import Clock


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
    monkeypatch.setattr("gpuspawner.kube.recent.time", clock := Clock())
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
