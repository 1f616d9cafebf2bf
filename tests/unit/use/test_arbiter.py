"""What the culler is told of each server."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from typing import Any

import pytest

from gpuspawner.use import arbiter

LIMIT = 7200


@pytest.fixture
def hub_says(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("JUPYTERHUB_API_URL", "http://hub/hub/api")
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "secret")
    asked = []

    def say(**server: object) -> list[Any]:
        body = json.dumps({"servers": {"/user/ann/": {"stays": False, **server}}}).encode()

        def answer(request: Any, **_: object) -> io.BytesIO:
            asked.append(request)
            return io.BytesIO(body)

        monkeypatch.setattr(arbiter, "_asked_at", float("-inf"))
        monkeypatch.setattr(arbiter, "urlopen", answer)
        return asked

    return say


def stops(hours: float, url: str = "/user/ann/") -> bool:
    return arbiter.gives_back(timedelta(hours=hours), LIMIT, {"url": url})


def test_a_server_that_uses_its_gpu_stays_also_without_a_browser(hub_says: Any) -> None:
    hub_says(use="used", stop=None)

    assert not stops(1000)


@pytest.mark.parametrize("use", ["unused", "unknown"])
def test_a_server_stays_that_its_owner_keeps_or_that_nobody_has_looked_at(
    use: str, hub_says: Any
) -> None:
    hub_says(use=use, stop=use == "unused", stays=True)

    assert not stops(1000)


@pytest.mark.parametrize("stop", [True, False])
def test_where_a_policy_gives_back_it_decides(stop: bool, hub_says: Any) -> None:
    hub_says(use="unused", stop=stop)

    assert stops(0) is stop
    assert stops(1000) is stop


@pytest.mark.parametrize(
    "known", [{"use": "unknown", "stop": False}, {"use": "unused", "stop": None}]
)
def test_else_the_cullers_own_rule_by_activity_holds(known: dict[str, Any], hub_says: Any) -> None:
    hub_says(**known)

    assert not stops(1.99)
    assert stops(2)


def test_a_server_without_a_gpu_is_judged_by_activity(hub_says: Any) -> None:
    hub_says(use="used", stop=None)

    assert stops(2, "/user/bob/")


def test_the_hub_is_asked_once_for_all_servers_with_the_cullers_token(hub_says: Any) -> None:
    asked = hub_says(use="used", stop=None)

    for _ in range(50):
        stops(1)

    (request,) = asked
    assert request.full_url == "http://hub/hub/gpuspawner/use"
    assert request.get_header("Authorization") == "token secret"


def test_a_hub_that_does_not_answer_is_an_error_which_stops_nothing(
    hub_says: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub_says()

    def fails(*_: object, **__: object) -> None:
        raise OSError("refused")

    monkeypatch.setattr(arbiter, "urlopen", fails)
    with pytest.raises(OSError, match="refused"):
        stops(1000)
