"""What is kept of the last few."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kube.recent import Recent


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
