"""Streams are limited for each client and in all, and leave nothing behind."""

from contextlib import ExitStack

import pytest

from gpuspawner.web.stream.crowd import Crowd, TooManyStreamsError

pytestmark = pytest.mark.each_python


def test_a_client_s_newest_streams_stay() -> None:
    crowd, ended = Crowd(most=10, most_of_one=2), list[int]()

    with ExitStack() as streams:
        for number in range(4):
            streams.enter_context(crowd.place("ann", lambda number=number: ended.append(number)))
        streams.enter_context(crowd.place("bob", lambda: ended.append(-1)))

    assert ended == [0, 1]


def test_nobody_is_sent_away_in_favour_of_others() -> None:
    crowd, ended = Crowd(most=2, most_of_one=2), list[str]()

    with crowd.place("ann", lambda: ended.append("ann")), crowd.place("bob", lambda: None):
        with pytest.raises(TooManyStreamsError), crowd.place("cat", lambda: None):
            pass
        assert not ended
    with crowd.place("cat", lambda: None):
        assert len(crowd) == 1


def test_nothing_is_kept_of_clients_that_are_gone() -> None:
    crowd = Crowd(most_of_one=2)
    for person in range(100):
        with ExitStack() as streams:
            for _ in range(3):
                streams.enter_context(crowd.place(person, lambda: None))

    assert len(crowd) == 0
    assert not crowd._of
