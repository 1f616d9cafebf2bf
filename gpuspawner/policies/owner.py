"""Whom a policy judges: the owner of a server, no matter who starts it."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

import msgspec

_MAGIC = frozenset("*?[")


class Owner(msgspec.Struct, frozen=True):
    """The owner of one server, as JupyterHub knows them at this moment.

    Attributes:
        roles: Roles of their own and of their groups; administrators have ``admin``.
        server: The server's name; "" for the default server.
    """

    name: str
    groups: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    server: str = ""


class Names(msgspec.Struct, frozen=True):
    """Some names, and patterns as in a shell, with ``*``, ``?`` and ``[…]``.

    Attributes:
        plain: All as they are written: a group may really be named ``ml[2026]``.
    """

    plain: frozenset[str] = frozenset()
    patterns: tuple[str, ...] = ()

    @classmethod
    def of(cls, written: Iterable[str]) -> "Names":
        """Read names and patterns."""
        names = tuple(dict.fromkeys(written))
        patterns = tuple(it for it in names if not _MAGIC.isdisjoint(it))
        return cls(frozenset(names), patterns)

    def __bool__(self) -> bool:
        return bool(self.plain or self.patterns)

    def __contains__(self, name: str) -> bool:
        return name in self.plain or any(fnmatchcase(name, it) for it in self.patterns)

    def among(self, names: frozenset[str]) -> frozenset[str]:
        """Return those of the given names that are among these."""
        found = self.plain & names
        return found | {it for it in names if it in self} if self.patterns else found


NO_NAMES = Names()


class People(msgspec.Struct, frozen=True):
    """Some users: by name, or by a group or a role that they are in."""

    users: Names = NO_NAMES
    groups: Names = NO_NAMES
    roles: Names = NO_NAMES

    def __bool__(self) -> bool:
        return bool(self.users or self.groups or self.roles)

    def include(self, owner: Owner) -> bool:
        """Whether the owner is among them."""
        return (
            owner.name in self.users
            or bool(self.groups.among(owner.groups))
            or bool(self.roles.among(owner.roles))
        )


NOBODY = People()
