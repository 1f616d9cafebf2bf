"""How long a kubelet waits before it tries again, and how it writes durations."""

from __future__ import annotations

import pytest

from localcluster.agent.backoff import FIRST_BACKOFF, Backoff, go_duration


def test_each_failure_doubles_the_wait_up_to_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FIRST_BACKOFF, raising=False)
    backoff = Backoff()

    assert [backoff.next() for _ in range(7)] == [10, 20, 40, 80, 160, 300, 300]


def test_tests_may_shorten_the_first_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FIRST_BACKOFF, "0.5")
    backoff = Backoff()

    assert [backoff.next() for _ in range(2)] == [0.5, 1]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.0004, "0s"),
        (0.25, "250ms"),
        (1, "1s"),
        (2.5, "2.5s"),
        (80, "1m20s"),
        (300, "5m0s"),
        (3661.25, "1h1m1.25s"),
    ],
)
def test_durations_are_written_as_go_does(seconds: float, text: str) -> None:
    assert go_duration(seconds) == text
