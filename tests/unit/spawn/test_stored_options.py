"""What of the stored options a refusal leaves; tests/hub/test_stored_options.py has it in a hub."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import copy_context

import pytest
from jupyterhub import orm
from sqlalchemy import text

from gpuspawner.compat import jupyterhub
from gpuspawner.messages import Message
from gpuspawner.spawn.refusal import Refusal
from gpuspawner.spawn.stored_options import restoring
from tests.unit.spawn.hubs import StillHub

NOTHING_SAID = object()
EVIL = {"image": "evil"}
TOO_MUCH = {"image": [0] * 20_000}


class Server:
    """A server, and what a hub stores of it."""

    def __init__(self, hub: StillHub) -> None:
        self.session = orm.new_session_factory("sqlite:///:memory:")()
        self.orm_spawner = orm.Spawner(name="lab")
        self.session.add(self.orm_spawner)
        self.session.commit()
        self.spawner = hub.spawner()
        self.spawner.orm_spawner = self.orm_spawner

    @property
    def stored(self) -> object:
        """What is in the database, whatever is in memory."""
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
        """Put something into the database that is not checked."""
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
def server(hub_with: Callable[..., StillHub]) -> Iterator[Server]:
    server = Server(hub_with())
    yield server
    server.session.close()


@pytest.mark.parametrize("refused", [EVIL, TOO_MUCH, NOTHING_SAID, ["image"], {}])
@pytest.mark.parametrize("stored", [None, {}, {"image": "new"}, ["of JupyterHub 5"]])
def test_refusals_leave_what_was_stored(server: Server, stored: object, refused: object) -> None:
    server.patch({"image": "old"})
    server.patch(stored)

    for _ in range(2):
        server.refuse(refused)

        assert server.stored == stored
        assert server.spawner.user_options == (stored or {}) or refused is NOTHING_SAID


def test_a_refusal_leaves_what_the_last_start_was_granted(server: Server) -> None:
    server.refuse(EVIL)
    server.grant({"image": "asked"})
    server.refuse(EVIL)
    server.refuse(NOTHING_SAID)

    assert server.stored == {"image": "granted"}


def test_a_refusal_leaves_what_was_stored_since_the_last_start(server: Server) -> None:
    server.grant({"image": "asked"})
    server.patch({"image": "new"})
    server.refuse(TOO_MUCH)
    server.refuse(EVIL)

    assert server.stored == {"image": "new"}


def test_what_was_refused_does_not_stay_in_place_of_what_cannot_be_stored(server: Server) -> None:
    server.store_as_another_version(TOO_MUCH)
    server.refuse(EVIL)

    assert server.stored == {}


def test_what_is_not_stored_is_told_in_one_line_of_the_log(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.orm_spawner.user = orm.User(name="alice")
    server.orm_spawner.name = "lab\nFake line"
    server.patch(TOO_MUCH)

    (record,) = [it for it in caplog.records if it.name == "gpuspawner.spawn.stored_options"]
    assert record.getMessage() == (
        "Not storing the options sent for alice:lab Fake line: "
        "more than 100 levels deep, or more than 10,000 values"
    )
