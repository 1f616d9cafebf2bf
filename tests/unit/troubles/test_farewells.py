"""The last of pods that are gone: it is kept for a while, and never for more than so many."""

from typing import Any

from gpuspawner.troubles.farewells import Farewells
from gpuspawner.troubles.trouble import Kind

EVICTED = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}


def gone(name: str, *conditions: dict[str, str]) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "hub", "deletionTimestamp": "2026-11-21T20:30:00Z"},
        "status": {"phase": "Running", "conditions": list(conditions)},
    }


def test_the_last_of_a_pod_tells_how_it_ended() -> None:
    farewells = Farewells()

    farewells.note(gone("a", EVICTED))
    farewells.note(gone("b"))

    assert [it.kind for name in "ab" if (it := farewells.of(("hub", name)))] == [
        Kind.EVICTED,
        Kind.DELETED,
    ]
    assert farewells.of(("hub", "c")) is None


def test_a_new_pod_of_the_name_is_not_told_the_old_one_s_ending() -> None:
    farewells = Farewells()
    farewells.note(gone("a", EVICTED))

    farewells.forget(("hub", "a"))
    farewells.forget(("hub", "a"))

    assert farewells.of(("hub", "a")) is None


def test_a_pod_that_ran_until_it_was_gone_replaces_what_was_known_of_its_name() -> None:
    farewells = Farewells()
    farewells.note(gone("a", EVICTED))
    running = {"metadata": {"name": "a", "namespace": "hub"}, "status": {"phase": "Running"}}

    farewells.note(running)

    assert farewells.of(("hub", "a")) is None


def test_the_oldest_are_forgotten_first() -> None:
    farewells = Farewells(most=2)

    for name in ("a", "b", "a", "c"):
        farewells.note(gone(name, EVICTED))

    kept = [name for name in "abc" if farewells.of(("hub", name))]
    assert kept == ["a", "c"]


def test_what_nobody_can_read_is_skipped() -> None:
    farewells = Farewells()

    for pod in (None, "text", {"metadata": 3}, {"status": {"conditions": "none"}}):
        farewells.note(pod)
