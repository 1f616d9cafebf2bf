"""What a hub remembers of starts that failed."""

import pytest

from gpuspawner.launch import failed_starts
from gpuspawner.launch.failed_starts import FailedStarts


def test_the_last_failure_of_each_server_is_known_until_its_next_start() -> None:
    known = FailedStarts()
    known.note(("ann", ""), "The disk is full.")
    known.note(("ann", ""), "The image is missing.")

    assert known.last(("ann", "")) == "The image is missing."
    assert known.last(("ann", "other")) == ""
    known.forget(("ann", ""))
    known.forget(("ann", ""))
    assert known.last(("ann", "")) == ""


def test_the_oldest_failures_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failed_starts, "_MOST", 2)
    known = FailedStarts()
    for name in ("ann", "bob", "ann", "cleo"):
        known.note((name, ""), "The disk is full.")

    assert [bool(known.last((name, ""))) for name in ("ann", "bob", "cleo")] == [True, False, True]
