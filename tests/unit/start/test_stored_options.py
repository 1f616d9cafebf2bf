"""Stored options after a refusal; tests/hub/gates/test_stored_options.py tests them in a hub."""

import json
from collections.abc import Iterator
from contextlib import suppress
from contextvars import copy_context

import pytest
from jupyterhub import orm
from sqlalchemy import event, text

from gpuspawner.compat import jupyterhub
from gpuspawner.messages import Message
from gpuspawner.start.refusal import Refusal
from gpuspawner.start.stored_options import restoring
from tests.unit.makers.hub_database import HubDatabase
from tests.unit.makers.hubs import StillHub

pytestmark = pytest.mark.each_python

NOTHING_SAID = object()
EVIL = {"image": "evil"}
TOO_MUCH = {"image": [0] * 20_000}


class Server:
    """A server and the hub's record of it."""

    def __init__(self, hub: StillHub) -> None:
        self.session = HubDatabase().session
        self.orm_spawner = orm.Spawner(name="lab")
        self.session.add(self.orm_spawner)
        self.session.commit()
        self.spawner = hub.spawner()
        self.spawner.orm_spawner = self.orm_spawner

    @property
    def stored(self) -> object:
        """The options in the database, which may differ from those in memory."""
        self.session.rollback()
        self.session.expire_all()
        return self.orm_spawner.user_options

    def patch(self, options: object) -> None:
        copy_context().run(self._save, options)

    def refuse(self, options: object) -> None:
        with suppress(Refusal):
            copy_context().run(self._start, options, is_refused=True)

    def grant(self, options: object) -> None:
        copy_context().run(self._start, options, is_refused=False)

    def store_as_another_version(self, options: object) -> None:
        """Write options into the database without any check."""
        stored = {"stored": json.dumps(options)}
        self.session.execute(text("UPDATE spawners SET user_options = :stored"), stored)
        self.session.commit()
        self.session.expire_all()

    def _save(self, options: object) -> None:
        self.orm_spawner.user_options = options
        self.session.commit()

    def _start(self, options: object, *, is_refused: bool) -> None:
        if options is not NOTHING_SAID:
            self._save(options)
        with restoring(self.spawner):
            if is_refused:
                raise Refusal(Message.of("no"), reason="busy")
        jupyterhub.store_options(self.spawner, {"image": "granted"})


@pytest.fixture
def server(hub_with) -> Iterator[Server]:
    server = Server(hub_with())
    yield server
    server.session.close()


@pytest.mark.parametrize("refused", [EVIL, TOO_MUCH, NOTHING_SAID, ["image"], {}])
@pytest.mark.parametrize("stored", [None, {}, {"image": "new"}, ["of JupyterHub 5"]])
def test_refusals_keep_the_stored_options(server, stored, refused) -> None:
    server.patch({"image": "old"})
    server.patch(stored)

    for _ in range(2):
        server.refuse(refused)

        assert server.stored == stored
        assert server.spawner.user_options == (stored or {}) or refused is NOTHING_SAID


def test_a_refusal_keeps_the_options_granted_to_the_last_start(server) -> None:
    server.refuse(EVIL)
    server.grant({"image": "asked"})
    server.refuse(EVIL)
    server.refuse(NOTHING_SAID)

    assert server.stored == {"image": "granted"}


def test_a_refusal_keeps_the_options_stored_since_the_last_start(server) -> None:
    server.grant({"image": "asked"})
    server.patch({"image": "new"})
    server.refuse(TOO_MUCH)
    server.refuse(EVIL)

    assert server.stored == {"image": "new"}


def test_refused_options_do_not_replace_options_too_large_to_store(server) -> None:
    server.store_as_another_version(TOO_MUCH)
    server.refuse(EVIL)

    assert server.stored == {}


def test_options_too_large_to_store_are_logged_in_one_line(server, caplog) -> None:
    server.orm_spawner.user = orm.User(name="alice")
    server.orm_spawner.name = "lab\nFake line"
    server.patch(TOO_MUCH)

    (record,) = [it for it in caplog.records if it.name == "gpuspawner.start.stored_options"]
    assert record.getMessage() == (
        "Not storing the options sent for alice:lab Fake line: "
        "more than 100 levels deep, or more than 10,000 values"
    )


def test_options_that_are_stored_already_are_not_written(server) -> None:
    written: list[object] = []
    event.listen(server.session, "after_flush", lambda *_: written.append(True))
    server.patch({"image": "granted"})
    written.clear()

    copy_context().run(jupyterhub.store_options, server.spawner, {"image": "granted"})
    assert written == []
    copy_context().run(jupyterhub.store_options, server.spawner, {"image": "other"})

    assert len(written) == 1
