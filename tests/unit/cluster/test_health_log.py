"""The health of the view in one line, for administrators."""

from __future__ import annotations

import pytest

from gpuspawner.cluster.health import Forbidden, Health, Live, Reading, Stale, Unreachable
from gpuspawner.cluster.health_log import explain_health


@pytest.mark.parametrize(
    ("health", "words"),
    [
        (Live(2), "The view of the cluster is live."),
        (Reading(3), "The hub is still reading the cluster (3 s so far)."),
        (Reading(0), "The hub is still reading the cluster."),
        (Stale(90, "timed out"), "The view of the cluster is 90 s old (timed out);"),
        (
            Forbidden(("nodes", "pods"), "no"),
            "The hub isn't allowed to list and watch nodes and pods (no);",
        ),
        (Unreachable("connection refused"), "The hub can't read the cluster (connection refused);"),
    ],
)
def test_administrators_read_what_is_wrong_with_the_view(health: Health, words: str) -> None:
    told = explain_health(health)

    assert told.startswith(words)
    # While the hub reads its first list, starts wait for it.
    assert ("starts servers without checking for room until" in told) == (
        not isinstance(health, Live | Reading)
    )
