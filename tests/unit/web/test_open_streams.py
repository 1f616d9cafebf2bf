"""What a slow client gets; how many streams there are, which leave nothing behind."""

import asyncio
from contextlib import ExitStack

import pytest

from gpuspawner.web.open_streams import KEEP_ALIVE, Crowd, Outlet, TooManyStreamsError
from tests.unit.makers.clocks import Clock


class Client:
    """Takes what is sent, and reads it if the test says so.

    Attributes:
        got: What it was sent.
        is_lost: Whether the outlet has given it up.
    """

    def __init__(self, reads=True):
        self.got = []
        self.is_lost = False
        self.clock = Clock(0.0)
        self._reads = reads
        self._unread = []
        self.outlet = Outlet(self._send, self._lose, self.clock)

    def _send(self, sent):
        self.got.append(sent)
        future = asyncio.get_running_loop().create_future()
        if self._reads:
            future.set_result(None)
        else:
            self._unread.append(future)
        return future

    def _lose(self):
        self.is_lost = True

    async def read(self):
        """Read all that was sent until now."""
        unread, self._unread = self._unread, []
        for future in unread:
            future.set_result(None)
        await asyncio.sleep(0)

    async def break_off(self):
        """Close the connection."""
        self._unread.pop().set_exception(OSError("gone"))
        await asyncio.sleep(0)


async def test_what_the_client_has_got_is_not_sent_again():
    client = Client()

    for message in (b"a", b"a", b"b", b"b", b"a"):
        client.outlet.show(message)

    assert client.got == [b"a", b"b", b"a"]


async def test_what_goes_ahead_of_a_message_does_not_make_it_another():
    client = Client()

    client.outlet.show(b"a", b"retry: 1\n")
    client.outlet.show(b"a", b"retry: 2\n")

    assert client.got == [b"retry: 1\na"]


async def test_a_client_that_does_not_read_gets_only_the_latest_later():
    client = Client(reads=False)

    for number in range(1000):
        client.outlet.show(b"%d" % number)
    assert client.got == [b"0"]

    await client.read()
    assert client.got == [b"0", b"999"]
    await client.read()
    assert client.got == [b"0", b"999"]


async def test_a_client_that_does_not_read_gets_no_comment():
    client = Client(reads=False)
    client.outlet.show(b"a")

    client.clock.now = 100
    client.outlet.keep_alive(20)

    assert client.got == [b"a"]
    assert client.outlet.waited() == 100


async def test_a_comment_is_sent_only_after_silence():
    client = Client()
    client.outlet.show(b"a")

    for now in (19, 21, 40, 42):
        client.clock.now = now
        client.outlet.keep_alive(20)

    assert client.got == [b"a", KEEP_ALIVE, KEEP_ALIVE]
    assert client.outlet.waited() == 0


async def test_a_client_that_is_gone_is_lost():
    client = Client(reads=False)
    client.outlet.show(b"a")

    await client.break_off()

    assert client.is_lost


@pytest.mark.each_python
def test_a_client_s_newest_streams_stay():
    crowd, ended = Crowd(most=10, most_of_one=2), list[int]()

    with ExitStack() as streams:
        for number in range(4):
            streams.enter_context(crowd.place("ann", lambda number=number: ended.append(number)))
        streams.enter_context(crowd.place("bob", lambda: ended.append(-1)))

    assert ended == [0, 1]


@pytest.mark.each_python
def test_nobody_is_sent_away_in_favour_of_others():
    crowd, ended = Crowd(most=2, most_of_one=2), list[str]()

    with crowd.place("ann", lambda: ended.append("ann")), crowd.place("bob", lambda: None):
        with pytest.raises(TooManyStreamsError), crowd.place("cat", lambda: None):
            pass
        assert not ended
    with crowd.place("cat", lambda: None):
        assert crowd._size == 1


@pytest.mark.each_python
def test_nothing_is_kept_of_clients_that_are_gone():
    crowd = Crowd(most_of_one=2)
    for person in range(100):
        with ExitStack() as streams:
            for _ in range(3):
                streams.enter_context(crowd.place(person, lambda: None))

    assert crowd._size == 0
    assert not crowd._of
