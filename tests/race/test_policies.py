"""What the race for limits counts; `make race` runs it with fifty people."""

from __future__ import annotations

from collections import Counter

from tests.race.history import Change, exceeded
from tests.race.limits import Books, Class
from tests.race.stage import Result, pod_asking_for


def test_the_history_tells_when_a_limit_is_exceeded() -> None:
    """Otherwise the race would prove nothing."""
    books = Books(Class.of(10).limits)
    five = [_change(f"p{number}", gpus=2) for number in range(1, 6)]
    gone = _change("p1", gpus=2, is_new=False)
    experiments = [_change("p2", gpus=1, server=name) for name in ("exp-1", "exp-2")]

    found = exceeded([*five, gone, *experiments], books)

    assert [line.rpartition(": ")[2] for line in found] == [
        "course holds 10 of the course's GPUs",
        "course holds 9 of the course's GPUs",
        "p2 holds 4 of a user's GPUs",
        "p2 holds 3 of a user's servers",
        "course holds 10 of the course's GPUs",
        "p2 holds 2 of a user's experiments",
    ]
    assert books.peaks["the course's GPUs"] == 10


def test_rounds_are_added_up_and_what_was_wrong_keeps_its_seed() -> None:
    summed = Result()
    for seed, most in ((7, 3.0), (8, 2.0)):
        summed.add(Result(Counter(up=2), {"held": most}, ["one is left"]), seed)

    assert (summed.counts, summed.most) == ({"up": 4}, {"held": 3.0})
    assert summed.wrong == ["one is left (seed 7)", "one is left (seed 8)"]


def _change(user: str, *, gpus: int, server: str = "", is_new: bool = True) -> Change:
    pod = pod_asking_for(gpus, "x", nodeSelector={"gpu": "t4"})
    names = {"hub.jupyter.org/username": user, "hub.jupyter.org/servername": server}
    pod["metadata"].update(resourceVersion="1", annotations=names)
    return Change(0.0, pod, is_new)
