"""What a request has sent, for the form that is drawn again."""

from __future__ import annotations

import asyncio
from contextvars import copy_context

from gpuspawner.messages import Message, OnForm
from gpuspawner.spawn import drafts
from gpuspawner.spawn.drafts import Draft

BUSY = OnForm(Message.of("It is in use."))


def test_a_draft_is_seen_by_the_tasks_of_its_request_and_by_no_other() -> None:
    async def look() -> Draft | None:
        return drafts.current()

    async def request() -> tuple[Draft | None, Draft]:
        mine = drafts.keep({"gpus": ["2"]})
        return await asyncio.create_task(look()), mine

    async def both() -> None:
        (seen, mine), other = await asyncio.gather(
            asyncio.create_task(request()), asyncio.create_task(look())
        )
        assert seen is mine
        assert other is None

    asyncio.run(both())


async def test_the_form_that_is_drawn_again_has_what_was_sent_and_why_it_was_refused() -> None:
    kept = drafts.keep({"gpus": ["2"]})

    drafts.refuse(BUSY)

    assert drafts.current() == Draft({"gpus": ["2"]}, BUSY, asyncio.current_task())
    assert drafts.current() is kept


def test_where_no_form_was_sent_there_is_none_to_show_a_refusal() -> None:
    context = copy_context()

    context.run(drafts.refuse, BUSY)

    assert context.run(drafts.current) is None
