"""A start ends when its server listens, or is refused if it never does."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gpuspawner.gates.refusal import Refusal
from gpuspawner.launch.listening import until_it_listens
from gpuspawner.launch.trouble import Exit, Kind, Trouble


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """The port of a server that accepts connections."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        number: int = server.sockets[0].getsockname()[1]
        yield number


async def test_a_server_that_listens_is_up(port: int) -> None:
    await until_it_listens(f"http://127.0.0.1:{port}", 60)


async def test_a_server_that_listens_only_later_is_waited_for(port: int) -> None:
    waiting = asyncio.create_task(until_it_listens(f"http://127.0.0.2:{port}", 60))
    await asyncio.sleep(0)
    late = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.2", port)
    async with late:
        await asyncio.wait_for(waiting, 60)


@pytest.mark.parametrize("host", ["127.0.0.3", "no-such-host.invalid", "a" * 64])
async def test_a_server_that_never_listens_is_refused(port: int, host: str) -> None:
    with pytest.raises(Refusal, match="Your server runs, but doesn't answer"):
        await until_it_listens(f"http://{host}:{port}", 0.05)


async def test_a_server_that_crashes_again_and_again_is_not_called_silent(port: int) -> None:
    said = Exit(code=1, last_words="ImportError: torch")
    crashed = Trouble(Kind.CRASHED, attempts=2, exit=said)
    with pytest.raises(Refusal, match=r"crashed while it started\..*ImportError: torch"):
        await until_it_listens(f"http://127.0.0.3:{port}", 0.05, lambda: (crashed,))


@pytest.mark.parametrize(
    "url", [None, ("127.0.0.1", 1), "", "unix+http://%2Fsocket", "http://[", "http://a:99999"]
)
async def test_another_kind_of_address_is_left_to_the_hub(url: object) -> None:
    await until_it_listens(url, 0.05)
