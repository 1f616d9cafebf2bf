"""The parts of a spawner that gpuspawner uses, and the language of its messages."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from gpuspawner import language
from gpuspawner.start.host import set_locale, within_start_timeout
from tests.unit.makers.hubs import StillHub


@pytest.mark.parametrize(
    ("configured", "accepted", "heard_as"),
    [("", "de", ["de"]), ("fr", "de", ["fr"]), ("fr", None, ["fr"]), ("", None, [])],
)
def test_a_request_keeps_its_language(
    configured: str,
    accepted: str | None,
    heard_as: list[str],
    hub_with: Callable[..., StillHub],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The hub may redraw a form with a spawner that has no handler."""
    heard: list[str] = []
    monkeypatch.setattr(language, "set_locale", heard.append)
    request = SimpleNamespace(headers={"Accept-Language": accepted})
    spawner = hub_with().spawner(language=configured)
    spawner.handler = SimpleNamespace(request=request) if accepted else None

    set_locale(spawner)

    assert heard == heard_as


def test_a_user_who_asks_about_another_s_server_gets_their_own_language(
    hub_with: Callable[..., StillHub], monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    monkeypatch.setattr(language, "set_locale", heard.append)
    spawner = hub_with().spawner()
    spawner.handler = _handler("de")

    set_locale(spawner, _handler("fr"))

    assert heard == ["fr"]


def _handler(accepted: str) -> SimpleNamespace:
    return SimpleNamespace(request=SimpleNamespace(headers={"Accept-Language": accepted}))


@pytest.mark.usefixtures("clock")
async def test_code_that_never_answers_is_waited_for_as_long_as_a_server(
    hub_with: Callable[..., StillHub],
) -> None:
    spawner = hub_with().spawner(start_timeout=90)
    loop = asyncio.get_running_loop()
    began = loop.time()

    with pytest.raises(TimeoutError, match=r"^no answer within 90 s$"):
        async with within_start_timeout(spawner):
            await asyncio.Event().wait()

    assert loop.time() - began == pytest.approx(90)


@pytest.mark.usefixtures("clock")
async def test_the_time_out_is_told_as_it_was_when_the_code_was_asked(
    hub_with: Callable[..., StillHub],
) -> None:
    """A profile that is loaded meanwhile may set another one."""
    spawner = hub_with().spawner(start_timeout=90)

    async def load() -> None:
        spawner.start_timeout = 600
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError, match=r"^no answer within 90 s$"):
        async with within_start_timeout(spawner):
            await load()


async def test_a_time_out_of_the_code_itself_keeps_its_words(
    hub_with: Callable[..., StillHub],
) -> None:
    with pytest.raises(TimeoutError, match=r"^LDAP is away$"):
        async with within_start_timeout(hub_with().spawner()):
            raise TimeoutError("LDAP is away")
