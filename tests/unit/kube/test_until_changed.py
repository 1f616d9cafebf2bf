"""Results that hold until something changes."""

from __future__ import annotations

from gpuspawner.kube.until_changed import UntilChanged


def test_a_result_is_found_by_any_of_its_keys_in_its_version_only() -> None:
    kept = UntilChanged[str](most=2)

    assert kept.keep(1, "shared", "free") == "free"

    assert kept.find(1, "alone", "shared") == "free"
    assert kept.find(1, "alone") is None
    assert kept.find(2, "shared") is None


def test_a_new_version_forgets_the_results_of_the_old_one() -> None:
    kept = UntilChanged[str](most=2)
    kept.keep(1, "a", "free")

    kept.keep(2, "b", "busy")

    assert (kept.find(2, "a"), kept.find(2, "b"), kept.find(1, "a")) == (None, "busy", None)


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
