"""What Kubernetes says, in tables by what that means."""

from collections.abc import Mapping

import pytest
from _pytest.mark import ParameterSet

Told = Mapping[object, Mapping[str, object]]
"""What means the same, by ids: the thread that a text is from, or what it is about."""


def meaning(told: Told) -> list[ParameterSet]:
    """Return the parameters of a test: each of them, and what it means, in one value or several."""
    return [
        pytest.param(it, *(what if isinstance(what, tuple) else (what,)), id=about)
        for what, rows in told.items()
        for about, it in rows.items()
    ]
