"""What is told of a start reaches each page, from the beginning."""

from __future__ import annotations

import asyncio
from typing import Any

from gpuspawner.messages import Message
from gpuspawner.spawn.story import Story


async def heard(story: Story, count: int) -> list[dict[str, Any]]:
    """The first events that a page reads."""
    found = []
    async for event in story.read():
        found.append(event)
        if len(found) == count:
            break
    return found


async def test_a_page_that_opens_late_reads_everything() -> None:
    story = Story()
    story.tell(Message.of("Looking."), 5)
    early = asyncio.create_task(heard(story, 2))
    await asyncio.sleep(0)
    story.tell(Message.of("Found."), 10)

    late = await asyncio.wait_for(heard(story, 2), 5)

    assert await early == late
    assert [it["message"] for it in late] == ["Looking.", "Found."]
    assert late[0]["html_message"].startswith("<strong>Looking.</strong><style>")
    assert late[1]["html_message"] == "<strong>Found.</strong>"


async def test_the_bar_never_moves_back() -> None:
    story = Story()
    story.tell(Message.of("Pulling."), 60)
    story.move(50)
    story.tell(Message.of("Still pulling."), 0)
    story.move(61)

    found = await asyncio.wait_for(heard(story, 3), 5)

    assert [it["progress"] for it in found] == [60, 60, 61]


async def test_a_bar_that_only_moves_repeats_the_last_message() -> None:
    """Each event has a message, as JupyterHub documents it; what Kubernetes says isn't repeated."""
    story = Story()
    story.move(7)
    story.tell(Message.of("Pulling."), 10, ["Pulling image"])
    story.move(12)

    told, moved = await asyncio.wait_for(heard(story, 2), 5)

    assert (told["progress"], moved["progress"]) == (10, 12)
    assert told["message"] == moved["message"] == "Pulling."
    assert "Pulling image" in told["html_message"]
    assert "Pulling image" not in moved["html_message"]
    assert "gpuspawner-before" in moved["html_message"]


async def test_a_page_cannot_change_what_another_reads() -> None:
    """The hub takes a key off each event before it sends it."""
    story = Story()
    story.tell(Message.of("Looking."), 5)
    [event] = await asyncio.wait_for(heard(story, 1), 5)
    event.clear()
    assert (await asyncio.wait_for(heard(story, 1), 5))[0]["message"] == "Looking."
