"""The draft of a request, for redrawing the form."""

import asyncio
from contextvars import copy_context

import pytest

from gpuspawner.messages import Message, OnForm
from gpuspawner.start import submitted_form
from gpuspawner.start.submitted_form import Draft

pytestmark = pytest.mark.each_python

BUSY = OnForm(Message.of("It is in use."))


def test_only_the_tasks_of_a_request_see_its_draft() -> None:
    async def look() -> Draft | None:
        return submitted_form.current()

    async def request() -> tuple[Draft | None, Draft]:
        mine = submitted_form.keep({"gpus": ["2"]})
        return await asyncio.create_task(look()), mine

    async def both() -> None:
        (seen, mine), other = await asyncio.gather(
            asyncio.create_task(request()), asyncio.create_task(look())
        )
        assert seen is mine
        assert other is None

    asyncio.run(both())


async def test_a_redrawn_form_has_the_sent_options_and_the_refusal() -> None:
    kept = submitted_form.keep({"gpus": ["2"]})

    submitted_form.refuse(BUSY)

    assert submitted_form.current() == Draft({"gpus": ["2"]}, BUSY, asyncio.current_task())
    assert submitted_form.current() is kept


def test_without_a_form_or_query_there_is_no_draft() -> None:
    context = copy_context()

    context.run(submitted_form.refuse, BUSY)

    assert context.run(submitted_form.current) is None
