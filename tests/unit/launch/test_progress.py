"""What is told of a start reaches each page, from the beginning."""

import asyncio

import pytest

from gpuspawner.launch.progress import REPEAT_SECONDS, Progress
from gpuspawner.messages import Message

pytestmark = pytest.mark.usefixtures("clock")


async def heard(progress, count):
    """The first events that a page reads, within an hour of the event loop's time."""
    page = progress.read()
    async with asyncio.timeout(3600):
        return [await anext(page) for _ in range(count)]


async def test_a_page_that_opens_late_reads_everything():
    progress = Progress()
    progress.tell(Message.of("Looking."), 5)
    early = asyncio.create_task(heard(progress, 2))
    await asyncio.sleep(0)
    progress.tell(Message.of("Found."), 10)

    late = await heard(progress, 2)

    assert await early == late
    assert [it["message"] for it in late] == ["Looking.", "Found."]
    assert late[0]["html_message"].startswith("<strong>Looking.</strong><style>")
    assert late[1]["html_message"] == "<strong>Found.</strong>"


async def test_the_bar_never_moves_back():
    progress = Progress()
    progress.tell(Message.of("Pulling."), 60)
    progress.move(50)
    progress.tell(Message.of("Still pulling."), 0)
    progress.move(61)

    found = await heard(progress, 3)

    assert [it["progress"] for it in found] == [60, 60, 61]


async def test_a_bar_that_only_moves_repeats_the_last_message():
    """Each event has a message, as JupyterHub documents it; what Kubernetes says isn't repeated."""
    progress = Progress()
    progress.move(7)
    progress.tell(Message.of("Pulling."), 10, ["Pulling image"])
    progress.move(12)

    told, moved = await heard(progress, 2)

    assert (told["progress"], moved["progress"]) == (10, 12)
    assert told["message"] == moved["message"] == "Pulling."
    assert "Pulling image" in told["html_message"]
    assert "Pulling image" not in moved["html_message"]
    assert "gpuspawner-before" in moved["html_message"]


async def test_a_page_cannot_change_what_another_reads():
    """The hub takes a key off each event before it sends it."""
    progress = Progress()
    progress.tell(Message.of("Looking."), 5)
    [event] = await heard(progress, 1)
    event.clear()
    assert (await heard(progress, 1))[0]["message"] == "Looking."


async def test_a_silent_page_reads_the_last_message_again():
    """Otherwise, the hub wouldn't notice that it was closed."""
    progress = Progress()
    progress.tell(Message.of("You are next."), 1)

    told, again, last = await heard(progress, 3)

    assert again == last
    assert (again["message"], again["progress"]) == (told["message"], 1)
    assert "gpuspawner-before" in again["html_message"]


async def test_before_anything_is_told_nothing_is_repeated():
    progress = Progress()
    reading = asyncio.create_task(heard(progress, 1))
    await asyncio.sleep(3 * REPEAT_SECONDS)
    assert not reading.done()

    progress.tell(Message.of("Looking."), 5)

    assert (await reading)[0]["message"] == "Looking."


async def test_a_late_page_reads_the_last_of_messages_that_replace_each_other():
    progress = Progress()
    for place in range(1000):
        progress.tell_instead(Message.of(f"{place} are ahead."), 5)
    progress.tell(Message.of("Found."), 10)

    late = await heard(progress, 3)

    assert [it["message"] for it in late] == ["999 are ahead.", "Found.", "Found."]
    assert "<style>" in late[0]["html_message"]
    assert "<style>" not in late[1]["html_message"]


async def test_an_open_page_reads_each_of_them():
    progress = Progress()
    reading = progress.read()
    for place in range(3):
        progress.tell_instead(Message.of(f"{place} are ahead."), 5)
        assert (await anext(reading))["message"] == f"{place} are ahead."
