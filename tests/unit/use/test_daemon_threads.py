"""Whoever waits for a call in a thread hears how it ended, whatever it raises."""

import asyncio
import sys
from traceback import format_exception

import pytest

from gpuspawner.use.daemon_threads import aside
from tests.waiting import UNIT_PATIENCE


def looks_for_nobody():
    return next(iter(()))


def leaves():
    sys.exit(3)


@pytest.mark.parametrize(
    ("call", "raises"),
    [(looks_for_nobody, RuntimeError), (leaves, RuntimeError), (lambda: {}["key"], KeyError)],
)
async def test_whoever_waits_hears_of_each_error_and_the_hub_goes_on(call, raises):
    with pytest.raises(raises) as raised:
        await asyncio.wait_for(aside(call), UNIT_PATIENCE)

    told = "".join(format_exception(raised.value))
    assert f"in {call.__name__}" in told
