"""A hub's database in memory, with the people that a test needs."""

from collections.abc import Iterable
from typing import Any

from jupyterhub import orm, roles


class HubDatabase:
    """The real database of JupyterHub, in memory.

    Attributes:
        session: As the hub's own; all its requests share one.
    """

    def __init__(self) -> None:
        self.session: Any = orm.new_session_factory("sqlite:///:memory:")()
        for role in roles.get_default_roles():
            roles.create_role(self.session, role)

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
