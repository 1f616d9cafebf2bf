"""When a long wait is told again."""

import pytest

from gpuspawner.launch.marks import last_mark


@pytest.mark.parametrize(
    ("elapsed", "mark"),
    [(0, 0), (29.9, 0), (30, 30), (61, 60), (179, 120), (299, 180), (300, 300), (3599, 3300)],
)
def test_the_last_mark_is_the_one_that_has_passed(elapsed: float, mark: int) -> None:
    assert last_mark(elapsed) == mark


def test_an_hour_has_few_marks() -> None:
    assert len({last_mark(second) for second in range(3600)}) < 20
