"""The groups and roles of JupyterHub's users, and the labels by which pods name them.

Read in ``jupyterhub/orm.py`` and ``jupyterhub/roles.py`` of 5.4.6, 5.5.0 and 6.1.1, and in
``kubespawner/slugs.py`` of 7.1.0.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import msgspec
from jupyterhub import orm
from kubespawner.slugs import escape_slug, is_valid_label, safe_slug
from sqlalchemy import select
from sqlalchemy.orm import aliased

_MEMBERS = orm.user_group_map.c


class Person(msgspec.Struct, frozen=True):
    """A user of the hub.

    Attributes:
        id: It stays the same if the user is renamed.
        label: The name in the labels that KubeSpawner gives to the user's pods.
        roles: The user's own and those of the groups.
    """

    id: int
    name: str
    label: str
    groups: frozenset[str]
    roles: frozenset[str]


def person(user: Any) -> Person:
    """Read a user: the hub's own object, or the row in its database."""
    roles = {role.name for role in user.roles}
    for group in user.groups:
        roles |= {role.name for role in group.roles}
    groups = frozenset(group.name for group in user.groups)
    return Person(user.id, user.name, label_of(user.name), groups, frozenset(roles))


@lru_cache(maxsize=4096)
def label_of(name: str) -> str:
    """Return the value of KubeSpawner's labels for the name of a user or server."""
    label: str = safe_slug(name, is_valid=is_valid_label)
    return label


def slugs_of(name: str) -> tuple[str, str]:
    """Return a server's name as KubeSpawner writes it into names, by each ``slug_scheme``."""
    return safe_slug(name), escape_slug(name)


def group_roles(database: Any, name: str) -> frozenset[str] | None:
    """Return the roles of a group's members by the hub's database; None if it has no such group."""
    group = orm.Group.find(database, name)
    return None if group is None else frozenset(it.name for it in group.roles)


def members(database: Any, group: str) -> Iterator[Person]:
    """Read the members of a group in the hub's database; none if there is no such group."""
    # Only names, in three queries: objects of a thousand members take a fifth of a second.
    theirs, is_member = aliased(orm.Group), orm.User.id.in_(_ids(group))
    of_users = database.query(orm.User.name, theirs.name, orm.User.id).filter(is_member)
    found = of_users.join(orm.User.groups.of_type(theirs)).all()
    ids, groups = {name: number for name, _, number in found}, _collected(found)
    of_users = database.query(orm.User.name, orm.Role.name).filter(is_member)
    roles = _collected(of_users.join(orm.User.roles))
    of_groups = _collected(database.query(orm.Group.name, orm.Role.name).join(orm.Group.roles))
    for name, its_groups in groups.items():
        its_roles = roles.get(name, set()).union(*(of_groups.get(it, set()) for it in its_groups))
        both = frozenset(its_groups), frozenset(its_roles)
        yield Person(ids[name], name, label_of(name), *both)


def member_ids(database: Any, group: str) -> Iterator[int]:
    """Read the ids of a group's members, which takes a tenth of `members`."""
    for (number,) in database.execute(_ids(group)):
        yield number


def _ids(group: str) -> Any:
    # A condition on `User.groups` would be checked for each of the hub's users.
    its_id = select(orm.Group.id).where(orm.Group.name == group).scalar_subquery()
    return select(_MEMBERS.user_id).where(_MEMBERS.group_id == its_id)


def _collected(pairs: Iterable[Any]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, other, *_ in pairs:
        found.setdefault(name, set()).add(other)
    return found
