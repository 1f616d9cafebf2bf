"""How the API server is asked about rights; test_rights.py tests what is made of its answers."""

import asyncio

import pytest

from gpuspawner.cluster.client import RequestError
from gpuspawner.doctor import access
from gpuspawner.doctor.access import Right


class Busy:
    """A client of an API server that refuses the first question and never answers the others."""

    def __init__(self):
        self.asked = 0

    async def post(self, *_):
        self.asked += 1
        if self.asked > 1:
            await asyncio.Event().wait()
        return 500, b""


async def test_after_an_error_no_question_goes_on():
    client = Busy()

    with pytest.raises(RequestError, match="HTTP 500 for a SelfSubjectAccessReview"):
        await access.missing(client, [Right("list", "pods"), Right("list", "nodes")])

    assert client.asked == 2
    assert asyncio.all_tasks() == {asyncio.current_task()}
