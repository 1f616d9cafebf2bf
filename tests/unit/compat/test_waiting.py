"""The hub's limits while people wait in line."""

import asyncio
import ssl
from collections.abc import Iterator
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub import orm
from jupyterhub.app import JupyterHub
from jupyterhub.spawner import Spawner
from sqlalchemy import text
from tornado import web
from tornado.httpclient import AsyncHTTPClient
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port

from gpuspawner.compat import waiting
from gpuspawner.line.resuming import resume
from gpuspawner.line.stored_places import StoredPlaces
from gpuspawner.reservations.place_in_line import KeptPlace, Wish
from tests.waiting import UNIT_PATIENCE

pytestmark = pytest.mark.each_python


@pytest.fixture
def hub(monkeypatch, database) -> Any:
    """A hub with a database, and with what a test gives it."""
    users = {"ann": SimpleNamespace(new_api_token=lambda **_: "token")}
    hub = SimpleNamespace(
        hub=SimpleNamespace(api_url="http://hub/api"),
        db=database.session,
        internal_ssl=False,
        tornado_settings={"users": users},
        tornado_application=SimpleNamespace(
            settings={"concurrent_spawn_limit": 10, "active_server_limit": 0}
        ),
    )
    monkeypatch.setattr(waiting, "hub", lambda: hub)
    return hub


@pytest.fixture
def settings(hub) -> dict[str, Any]:
    found: dict[str, Any] = hub.tornado_application.settings
    return found


def server_of(user: Any, place: int, **traits: Any) -> orm.Spawner:
    return orm.Spawner(name="", user=user, state={"place": place}, **traits)


def test_each_who_waits_raises_the_limits_as_long_as_they_wait(settings) -> None:
    with waiting.uncounted("ann"), waiting.uncounted("bob"):
        assert settings["concurrent_spawn_limit"] == 12
        assert settings["active_server_limit"] == 0  # no limit for the hub; 1 would be one
    assert settings["concurrent_spawn_limit"] == 10


def test_who_waits_in_a_request_of_ours_raises_the_limits_once(settings) -> None:
    """After a restart the request stays open for seconds, and others would get past the limits."""
    request = waiting.uncounted("ann")
    with request:
        wait = waiting.uncounted("ann")
        wait.__enter__()
        assert settings["concurrent_spawn_limit"] == 11
    assert settings["concurrent_spawn_limit"] == 11
    wait.__exit__(None, None, None)
    assert settings["concurrent_spawn_limit"] == 10


def test_a_wait_that_fails_gives_the_limit_back(settings) -> None:
    with pytest.raises(ValueError, match="x"), waiting.uncounted("ann"):
        raise ValueError("x")
    assert settings["concurrent_spawn_limit"] == 10


async def test_a_start_that_goes_on_waiting_is_not_refused_by_the_limits_itself(
    database, settings, monkeypatch
) -> None:
    """The hub checks its limits before the server joins the line."""
    found: list[int] = []

    async def fetch(_: object) -> object:
        found.append(settings["concurrent_spawn_limit"])
        return SimpleNamespace(code=202)

    monkeypatch.setattr(waiting, "_fetch", fetch)

    assert await waiting.start(database.server(database.user("ann")), {}) == 202
    assert found == [11]
    assert settings["concurrent_spawn_limit"] == 10


async def test_a_server_is_started_by_the_name_that_its_owner_has_by_now(
    database, hub, monkeypatch
) -> None:
    asked: list[str] = []

    async def fetch(request: Any) -> object:
        asked.append(request.url)
        return SimpleNamespace(code=202)

    monkeypatch.setattr(waiting, "_fetch", fetch)
    row = database.server(database.user("eve"), "lab", runs=False)
    row.user.name = "ann"
    hub.db.commit()

    await waiting.start(row, {})

    assert asked == ["http://hub/api/users/ann/servers/lab"]


async def test_an_answer_says_nothing_if_the_database_has_failed_meanwhile(
    database, hub, monkeypatch
) -> None:
    """The hub answers 500 if its commit fails, and 403 if it can't read whose request it is."""

    async def fetch(_: object) -> object:
        hub.db.connection()
        hub.db.rollback()
        return SimpleNamespace(code=500)

    monkeypatch.setattr(waiting, "_fetch", fetch)

    assert await waiting.start(database.server(database.user("ann")), {}) in waiting.NOT_YET


def test_without_a_hub_there_are_no_limits() -> None:
    assert waiting.hub() is None
    with waiting.uncounted("ann"):
        pass


@pytest.fixture
async def answering(hub) -> Any:
    """What answers at the hub's address, with the status that a test gives it."""
    found = SimpleNamespace(status=200)

    class Answer(web.RequestHandler):
        def get(self) -> None:
            self.set_status(found.status)

    server = HTTPServer(web.Application([("/hub/api", Answer)]))
    socket, port = bind_unused_port()
    server.add_sockets([socket])
    hub.hub.api_url = f"http://127.0.0.1:{port}/hub/api"
    yield found
    server.stop()
    await server.close_all_connections()


@pytest.mark.parametrize(
    ("status", "is_its"), [(200, True), (403, True), (502, False), (503, False)]
)
async def test_a_mesh_that_answers_for_a_hub_is_not_the_hub(status, is_its, answering) -> None:
    answering.status = status

    assert await waiting.answers() == is_its


async def test_a_hub_without_its_settings_answers_nobody(hub, answering) -> None:  # noqa: ARG001
    """Whoever answers at its address by then."""
    hub.tornado_application = None

    assert not await waiting.answers()


def test_whether_a_server_is_active_makes_no_users_of_a_hub_that_is_about_to_start(
    database, monkeypatch
) -> None:
    this = JupyterHub(tornado_settings={"slow_spawn_timeout": 0})
    this.db = database.session
    monkeypatch.setattr(waiting, "hub", lambda: this)

    assert not waiting.is_active(database.server(database.user("ann")))
    assert not this.trait_has_value("users")


class Curl(AsyncHTTPClient):
    """What the hub configures if pycurl is installed: it takes no `ssl_options`."""

    def fetch_impl(self, *_: Any, **__: Any) -> None:
        raise ValueError("ssl_options not supported by CurlAsyncHTTPClient")


@pytest.fixture
def with_pycurl() -> Iterator[None]:
    AsyncHTTPClient.configure(Curl)
    yield
    AsyncHTTPClient.configure(None)


@pytest.mark.usefixtures("with_pycurl")
async def test_a_hub_with_its_own_certificates_is_asked_even_if_there_is_pycurl(
    hub, monkeypatch, unused_tcp_port
) -> None:
    hub.hub.api_url = f"https://127.0.0.1:{unused_tcp_port}/hub/api"
    hub.internal_ssl = True
    hub.internal_ssl_key = hub.internal_ssl_cert = hub.internal_ssl_ca = ""
    monkeypatch.setattr(waiting, "make_ssl_context", lambda *_, **__: ssl.create_default_context())

    assert not await waiting.answers()  # nobody listens


def test_a_state_that_isnt_json_keeps_the_hub_from_no_other(database, hub) -> None:
    session = hub.db
    for name in ("ann", "bob", "cam"):
        state = {} if name == "cam" else {"place": name}
        session.add(orm.Spawner(name="", user=database.user(name), state=state))
    session.flush()
    session.execute(text("""UPDATE spawners SET state = '{"place" ' WHERE state LIKE '%ann%'"""))
    session.commit()
    session.expunge_all()

    assert [(it.user.name, state) for it, state in waiting.stored_states("place")] == [
        ("bob", {"place": "bob"})
    ]


async def test_a_stored_state_can_be_changed_unless_the_server_is_gone(database, hub) -> None:
    session, user = hub.db, database.user("ann")
    session.add(server_of(user, 1))
    session.commit()
    hub.tornado_settings["users"]["ann"] = SimpleNamespace(
        orm_spawners=user.orm_spawners, spawners={}
    )
    ((server, _),) = waiting.stored_states("place")

    for it in (server, server_of(None, 5)):
        await waiting.change_state(it, lambda state: {"place": state["place"] + 1})
    session.rollback()

    assert [state for _, state in waiting.stored_states("place")] == [{"place": 2}]


async def test_a_server_is_not_stored_any_more_once_another_has_its_names(database, hub) -> None:
    session = hub.db
    first = hub.tornado_settings["users"]["ann"] = database.user("ann")
    session.add(server_of(first, 1))
    session.commit()
    ((server, _),) = waiting.stored_states("place")
    assert waiting.is_stored(server)

    session.delete(first)
    session.commit()
    session.add(server_of(database.user("ann"), 2))
    session.commit()
    its = orm.User.find(session, "ann").orm_spawners
    hub.tornado_settings["users"]["ann"] = SimpleNamespace(orm_spawners=its, spawners={})
    await waiting.change_state(server, lambda _: {})

    assert its[""].state == {"place": 2}
    assert not waiting.is_stored(server)


def test_the_log_names_a_server_as_the_hub_does(database) -> None:
    ann = database.user("ann")
    names = [waiting.log_name(database.server(ann, it)) for it in ("", "lab")]

    assert names == ["ann", "ann:lab"]


def test_a_server_that_the_hub_checks_is_active(database, hub) -> None:
    ann = database.user("ann")
    row, other, of_bob = (
        database.server(user, name, runs=False)
        for user, name in ((ann, ""), (ann, "other"), (database.user("bob"), ""))
    )
    spawner = Spawner(orm_spawner=row)
    hub.tornado_settings["users"]["ann"] = SimpleNamespace(spawners={"": spawner})
    assert not waiting.is_active(row)

    spawner._check_pending = True

    assert waiting.is_active(row)
    assert not waiting.is_active(other)
    assert not waiting.is_active(of_bob)


async def test_a_place_is_given_up_though_another_server_with_the_same_names_runs(
    hub, caplog
) -> None:
    """Else, the hub would look twenty times a second for as long as the other one runs."""
    other = SimpleNamespace(active=True, orm_spawner=orm.Spawner(name=""))
    hub.tornado_settings["users"]["ann"] = SimpleNamespace(
        spawners={"": other}, orm_spawners={"": other.orm_spawner}
    )
    kept, server = StoredPlaces(), orm.Spawner(name="")
    kept.keep(server, KeptPlace(1.0, Wish.ANYWAY))

    async with asyncio.timeout(UNIT_PATIENCE):
        await resume(kept, server)

    assert kept.find(server) is None
    assert "A server that is deleted can't wait in line any more" in caplog.text


async def test_a_server_that_is_called_begins_its_time_in_the_database(database) -> None:
    row = server_of(database.user("ann"), 1, started=datetime(2026, 1, 1))  # noqa: DTZ001
    database.session.add(row)
    database.session.commit()

    await waiting.begin_now(SimpleNamespace(orm_spawner=row))
    database.session.rollback()

    assert row.started == row.last_activity > datetime(2026, 1, 1)  # noqa: DTZ001


async def test_a_server_without_a_row_has_no_time() -> None:
    await waiting.begin_now(SimpleNamespace(orm_spawner=None))
