"""The parts of a spawner that gpuspawner uses, and the language of its messages."""

import asyncio
from types import SimpleNamespace

import pytest

from gpuspawner import language
from gpuspawner.start.host import set_locale, within_start_timeout


def handler(accepted: str) -> SimpleNamespace:
    return SimpleNamespace(request=SimpleNamespace(headers={"Accept-Language": accepted}))


DE, FR = handler("de"), handler("fr")


@pytest.mark.parametrize(
    ("configured", "of_the_spawner", "asking", "heard_as"),
    [
        ("", DE, None, ["de"]),
        ("fr", DE, None, ["fr"]),
        ("fr", None, None, ["fr"]),
        ("", None, None, []),
        ("", DE, FR, ["fr"]),
    ],
    ids=["accepted", "configured", "no handler", "nothing is known", "about another's server"],
)
def test_a_request_keeps_its_language(
    configured, of_the_spawner, asking, heard_as, hub_with, monkeypatch
) -> None:
    """The hub may redraw a form with a spawner that has no handler."""
    heard: list[str] = []
    monkeypatch.setattr(language, "set_locale", heard.append)
    spawner = hub_with().spawner(language=configured)
    spawner.handler = of_the_spawner

    set_locale(spawner, asking)

    assert heard == heard_as


@pytest.mark.usefixtures("clock")
async def test_code_that_never_answers_is_waited_for_as_long_as_a_server(hub_with) -> None:
    """A profile that is loaded meanwhile may set another timeout."""
    spawner, loop = hub_with().spawner(start_timeout=90), asyncio.get_running_loop()
    began = loop.time()

    async def load() -> None:
        spawner.start_timeout = 600
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError, match=r"^no answer within 90 s$"):
        async with within_start_timeout(spawner):
            await load()

    assert loop.time() - began == pytest.approx(90)


async def test_a_time_out_of_the_code_itself_keeps_its_words(hub_with) -> None:
    with pytest.raises(TimeoutError, match=r"^LDAP is away$"):
        async with within_start_timeout(hub_with().spawner()):
            raise TimeoutError("LDAP is away")
