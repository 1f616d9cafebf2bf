"""The language of a spawner's messages."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from gpuspawner import language
from gpuspawner.start.host import set_locale
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
