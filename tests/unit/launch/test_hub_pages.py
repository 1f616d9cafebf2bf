"""What the hub's pages tell of a user's servers, beside the hub's own announcements."""

import asyncio
from datetime import timedelta
from types import SimpleNamespace
from unittest.mock import Mock
from weakref import WeakKeyDictionary

import pytest
from markupsafe import Markup
from sqlalchemy.exc import PendingRollbackError
from tornado import web
from tornado.httpclient import AsyncHTTPClient
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port

from gpuspawner import language
from gpuspawner.compat import pages
from gpuspawner.launch.hub_pages import announce, last_server, told_at_home, told_everywhere
from gpuspawner.troubles.ending import Ending, utc_now, written
from gpuspawner.troubles.trouble import Kind

LOST = "ended because its machine was lost."
AGAIN = "Please start your server again; it may get another machine."


def state(age=timedelta(), kind=Kind.NODE_LOST):
    return {"gpuspawner": {"ending": written(Ending(kind, utc_now() - age))}}


def person(**states):
    """Return a user with these servers, none of which runs."""
    rows = {name: SimpleNamespace(state=it, server=None) for name, it in states.items()}
    return SimpleNamespace(orm_spawners=rows, spawners={})


def test_every_page_tells_how_the_last_servers_ended():
    user = person(train=state(), demo=state(), other={"pod_name": "x"}, new=None)

    assert told_everywhere(user) == (
        f'<span class="text-break"><strong>demo</strong> {LOST} {AGAIN}<br>'
        f"<strong>train</strong> {LOST} {AGAIN}</span>"
    )


def test_a_server_that_runs_again_has_not_ended():
    user = person(train=state())
    user.orm_spawners["train"].server = object()

    assert told_everywhere(user) == ""


def test_what_is_older_than_a_day_is_told_on_the_form_only():
    old = state(timedelta(hours=25))
    form = SimpleNamespace(orm_spawner=Mock(state=old))

    assert told_everywhere(person(train=old)) == ""
    assert last_server(form, WeakKeyDictionary()) == (
        f"Your last server {LOST} That was 25 hours ago. {AGAIN}",
    )


@pytest.mark.parametrize("user", [None, SimpleNamespace(name="a service")])
def test_nobody_is_told_of_servers_that_they_can_t_have(user, hub_with):
    hub = hub_with()
    runtime = hub.runtime(hub.spawner())

    assert told_everywhere(user) == ""
    assert told_at_home(runtime, user) == ""


def test_a_database_that_fails_breaks_no_page():
    class Broken:
        db = Mock()

        @property
        def orm_spawners(self):
            raise PendingRollbackError

    assert told_everywhere(Broken()) == ""
    assert Broken.db.rollback.called  # or the next page would fail too


def announcements(**variables):
    """Return the template's variables for a user, as the hub computes them for every page."""
    hub = SimpleNamespace(template_vars=dict(variables))
    pages.announce(hub, lambda _: Markup("ended"), lambda _: Markup("ends soon"))
    return {
        name: value(object()) if callable(value) else value
        for name, value in hub.template_vars.items()
    }


def test_a_bug_of_ours_breaks_no_page(monkeypatch):
    hub = SimpleNamespace(template_vars={"announcement": "Maintenance on Monday"})
    announce(hub, Mock(), "")
    told = hub.template_vars["announcement"]
    assert LOST in told(person(train=state()))

    monkeypatch.setattr("gpuspawner.compat.jupyterhub.stopped", Mock(side_effect=KeyError("a bug")))

    assert told(person()) == "Maintenance on Monday"


OWN = {"announcement": lambda _: "all", "announcement_home": "", "announcement_spawn": "form"}


@pytest.mark.parametrize(
    ("own", "everywhere", "at_home", "on_the_form"),
    [
        ({}, "ended", "ended<br>ends soon", ""),
        (
            {"announcement": "<b>Hi</b>"},
            "<b>Hi</b><br>ended",
            "<b>Hi</b><br>ended<br>ends soon",
            "<b>Hi</b>",
        ),
        (OWN, "all<br>ended", "ended<br>ends soon", "form"),
    ],
    ids=["none", "one for all pages", "one for each page"],
)
def test_the_form_s_page_shows_only_the_hub_s_own_announcement(
    own, everywhere, at_home, on_the_form
):
    assert announcements(**own) == {
        "announcement": everywhere,
        "announcement_home": at_home,
        "announcement_spawn": on_the_form,
    }


def test_an_announcement_that_is_no_text_stays_for_the_administrator_s_template():
    listed = [{"text": "Downtime on Monday"}]

    assert set(map(str, announcements(announcement=listed).values())) == {str(listed)}
    assert announcements(announcement=lambda _: listed)["announcement_home"] is listed


def told_of(hub, *spawners):
    """Return what ann's home page says of these servers of hers."""
    user = SimpleNamespace(orm_spawners={}, spawners={it.name: it for it in spawners})
    return told_at_home(hub.runtime(hub.spawner()), user)


def waiting(name, *, is_on, pod=None):
    """Return a server of ann's that starts, in line if *is_on*."""
    return SimpleNamespace(
        name=name,
        pending="spawn",
        ready=False,
        gpuspawner_gates=SimpleNamespace(turn=SimpleNamespace(is_on=is_on)),
        gpuspawner_stock=SimpleNamespace(known_pod=lambda: pod),
    )


def test_the_home_page_leads_to_the_line_of_each_server_that_waits(hub_with, monkeypatch):
    monkeypatch.setattr("gpuspawner.launch.hub_pages.line", lambda it: f"/line/ann/{it.name}")

    told = told_of(hub_with(), waiting("train", is_on=True), waiting("", is_on=False))

    assert told == (
        '<span class="text-break"><strong>train</strong> waits in line. '
        '<a class="text-reset" href="/line/ann/train">Your place in line</a></span>'
    )


IN_QUEUE = "<strong>train</strong> waits in the cluster&#39;s queue."


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ("kueue.x-k8s.io/admission", f'<span class="text-break">{IN_QUEUE}</span>'),
        ("example.org/x", ""),
    ],
)
def test_the_home_page_says_which_servers_kueue_holds_back(gate, said, hub_with):
    pod = {"spec": {"schedulingGates": [{"name": gate}]}}

    assert told_of(hub_with(), waiting("train", is_on=False, pod=pod)) == said


class Page(web.RequestHandler):
    async def get(self):
        await asyncio.sleep(0.01)  # others are answered meanwhile
        self.write(told_everywhere(person(train=state())))


@pytest.mark.parametrize(
    ("spoken", "accepted", "expected"),
    [
        ("", "zh-CN", "已结束，因为其所在机器失联。"),
        ("", "en", LOST),
        ("zh", "en", "已结束，因为其所在机器失联。"),
    ],
)
async def test_every_page_tells_it_in_the_language_of_its_reader(spoken, accepted, expected):
    hub = SimpleNamespace(template_vars={})
    tasks = []
    announce(hub, SimpleNamespace(run=lambda it: tasks.append(asyncio.create_task(it))), spoken)
    await asyncio.sleep(0)  # the hub makes its application later
    hub.tornado_application = web.Application([("/", Page)])
    await asyncio.gather(*tasks)
    socket, port = bind_unused_port()
    serving = HTTPServer(hub.tornado_application)
    serving.add_sockets([socket])

    def fetch(tag):
        return AsyncHTTPClient().fetch(
            f"http://127.0.0.1:{port}/", headers={"Accept-Language": tag}
        )

    other, mine = await asyncio.gather(fetch("en"), fetch(accepted))
    serving.stop()

    assert expected in mine.body.decode()
    assert (LOST in other.body.decode()) is (spoken == "")
    assert language.language_tag() == "en"
