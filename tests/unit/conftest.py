"""What holds for the tests of the pure rooms."""

from __future__ import annotations

import asyncio
import os
import selectors
from collections.abc import Callable, Iterator

import pytest


@pytest.fixture(scope="package", autouse=True)
def no_certificate_authorities() -> Iterator[None]:
    """Spare each client the reading of the machine's certificate authorities, which takes 90 ms.

    No test of this folder speaks to a server that has a certificate of theirs.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", os.devnull)
        patch.setenv("SSL_CERT_DIR", os.devnull)
        yield


@pytest.fixture
async def virtual_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[], float]:
    """Let the event loop's clock jump to the next timer, as soon as nothing else is left to do.

    A wait then takes no time, and exactly as long as it should. It is for tests without sockets,
    processes and threads: the clock doesn't wait for them. The fixture is the clock.
    """
    loop = asyncio.get_running_loop()
    selector: selectors.BaseSelector = loop._selector  # type: ignore[attr-defined]
    now, select = loop.time(), selector.select

    def skip(seconds: float | None) -> object:
        nonlocal now
        if seconds is None:
            return select(None)
        now += seconds
        return select(0)

    def clock() -> float:
        return now

    monkeypatch.setattr(loop, "time", clock)
    monkeypatch.setattr(selector, "select", skip)
    return clock
