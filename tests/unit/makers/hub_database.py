"""A hub's database in memory, with the people that a test needs."""

import logging
import sqlite3
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from jupyterhub import orm, roles
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

IN_MEMORY = "sqlite:///:memory:"


@cache
def _sessions() -> Any:
    """Return what makes sessions of the hub's own, each on an unused database of its own.

    Tables and roles are made once, which takes 70 ms, and then copied.
    """
    sessions = _logging_as_before(lambda: orm.new_session_factory(IN_MEMORY))
    with sessions() as session:
        for role in roles.get_default_roles():
            roles.create_role(session, role)
        unused = _copy(session.connection().connection.driver_connection)
    engine = create_engine(IN_MEMORY, creator=lambda: _copy(unused), poolclass=NullPool)
    orm.register_foreign_keys(engine)
    return lambda: sessions(bind=engine.connect())


def _logging_as_before(make: Callable[[], Any]) -> Any:
    """Make something without the logging of JupyterHub's migrations, which would take over."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    try:
        return make()
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers


def _copy(database: sqlite3.Connection) -> sqlite3.Connection:
    made = sqlite3.connect(":memory:", check_same_thread=False)
    database.backup(made)
    return made


class HubDatabase:
    """The real database of JupyterHub, in memory.

    Attributes:
        session: As the hub's own; all its requests share one.
    """

    def __init__(self) -> None:
        self.session: Any = _sessions()()
        self._connection = self.session.connection().connection.driver_connection

    def execute(self, statement: str) -> list[Any]:
        """Execute SQL beside the session; return the rows."""
        return list(self._connection.execute(statement))

    def user(self, name: str, *groups: str, admin: bool = False, own: Iterable[str] = ()) -> Any:
        """Add a user to these groups; *own* are roles of the user's own."""
        user = orm.User(name=name, admin=admin)
        self.session.add(user)
        self.session.commit()
        roles.assign_default_roles(self.session, entity=user)
        for role in own:
            user.roles.append(self.role(role))
        user.groups.extend(self.group(it) for it in groups)
        self.session.commit()
        return user

    def server(self, user: Any, name: str = "", *, runs: bool = True, **state: object) -> Any:
        """Add a server of a user's, and what is stored of it."""
        row = orm.Spawner(name=name, user=user, state=state, server=orm.Server() if runs else None)
        self.session.add(row)
        self.session.commit()
        return row

    def group(self, name: str) -> Any:
        """The group of this name, which is made if need be."""
        found = orm.Group.find(self.session, name=name)
        if found is None:
            found = orm.Group(name=name)
            self.session.add(found)
            self.session.commit()
        return found

    def role(self, name: str) -> Any:
        """The role of this name, which is made if need be."""
        found = orm.Role.find(self.session, name=name)
        if found is None:
            found = orm.Role(name=name, description=name)
            self.session.add(found)
            self.session.commit()
        return found
