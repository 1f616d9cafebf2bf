"""What the culler is told of each server."""

import io
import json
from datetime import timedelta

import pytest

from gpuspawner.use import arbiter

LIMIT, ANN = 7200, "/user/ann/"


@pytest.fixture
def hub_says(monkeypatch):
    monkeypatch.setenv("JUPYTERHUB_API_URL", "http://hub/hub/api")
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "secret")
    asked = []

    def say(**server):
        body = json.dumps({"servers": {ANN: {"stays": False, **server}}}).encode()

        def answer(request, **_):
            asked.append(request)
            return io.BytesIO(body)

        monkeypatch.setattr(arbiter, "_asked_at", float("-inf"))
        monkeypatch.setattr(arbiter, "urlopen", answer)
        return asked

    return say


def stops(hours, url=ANN):
    return arbiter.gives_back(timedelta(hours=hours), LIMIT, {"url": url})


def test_a_server_that_uses_its_gpu_stays_also_without_a_browser(hub_says):
    hub_says(use="used", stop=None)

    assert not stops(1000)


@pytest.mark.parametrize("use", ["unused", "unknown"])
def test_a_server_stays_that_its_owner_keeps_or_that_nobody_has_looked_at(use, hub_says):
    hub_says(use=use, stop=use == "unused", stays=True)

    assert not stops(1000)


@pytest.mark.parametrize("stop", [True, False])
def test_where_a_policy_gives_back_it_decides(stop, hub_says):
    hub_says(use="unused", stop=stop)

    assert stops(0) is stop
    assert stops(1000) is stop


@pytest.mark.parametrize(
    ("use", "stop", "url"),
    [("unknown", False, ANN), ("unused", None, ANN), ("used", None, "/user/bob/")],
    ids=["nobody knows", "no policy", "no GPU"],
)
def test_else_the_cullers_own_rule_by_activity_holds(use, stop, url, hub_says):
    hub_says(use=use, stop=stop)

    assert not stops(1.99, url)
    assert stops(2, url)


def test_the_hub_is_asked_once_for_all_servers_with_the_cullers_token(hub_says):
    asked = hub_says(use="used", stop=None)

    for _ in range(50):
        stops(1)

    (request,) = asked
    assert request.full_url == "http://hub/hub/gpuspawner/use"
    assert request.get_header("Authorization") == "token secret"


def test_a_hub_that_does_not_answer_is_an_error_which_stops_nothing(hub_says, monkeypatch):
    hub_says()

    def fails(*_, **__):
        raise OSError("refused")

    monkeypatch.setattr(arbiter, "urlopen", fails)
    with pytest.raises(OSError, match="refused"):
        stops(1000)
