"""The language in which a spawner's owner is answered."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from gpuspawner import language
from gpuspawner.spawn.locale import set_locale
from tests.unit.spawn.hubs import StillHub


@pytest.mark.parametrize(
    ("configured", "accepted", "heard_as"),
    [("", "de", ["de"]), ("fr", "de", ["fr"]), ("fr", None, ["fr"]), ("", None, [])],
)
def test_what_a_request_has_begun_in_one_language_goes_on_in_it(
    configured: str,
    accepted: str | None,
    heard_as: list[str],
    hub_with: Callable[..., StillHub],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A form that is drawn again comes from a spawner that the hub may have told no handler."""
    heard: list[str] = []
    monkeypatch.setattr(language, "set_locale", heard.append)
    request = SimpleNamespace(headers={"Accept-Language": accepted})
    spawner = hub_with().spawner(language=configured)
    spawner.handler = SimpleNamespace(request=request) if accepted else None

    set_locale(spawner)

    assert heard == heard_as


def test_whoever_asks_about_another_s_server_is_answered_in_their_own_language(
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
