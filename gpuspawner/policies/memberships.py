"""The members of groups, as the hub's database says; read again every few seconds at most."""

from collections.abc import Iterator
from typing import Any

from gpuspawner.compat import people
from gpuspawner.kube.caches import KeptFor
from gpuspawner.policies.charges import Who
from gpuspawner.policies.owner import Owner
from gpuspawner.policies.policies import Policy

KEPT_SECONDS = 5.0
"""How long the members of a group are kept. A server's owner is always read anew."""
MOST = 1000
"""The members of how many groups are kept, by policy: a function may write ever new ones."""


class Memberships:
    """The members of groups, by policy."""

    def __init__(self) -> None:
        self._found = KeptFor[tuple[str, str], tuple[Policy, frozenset[Who]]](KEPT_SECONDS, MOST)

    def ids(self, database: Any, policy: Policy, group: str) -> frozenset[Who]:
        """Return the ids of the members of a group to whom the policy applies."""
        key = policy.name, group
        kept = self._found.find(key)
        if kept is None or (policy is not kept[0] and policy != kept[0]):
            kept = self._found.keep(key, (policy, frozenset(_members(database, policy, group))))
        return kept[1]


def _members(database: Any, policy: Policy, group: str) -> Iterator[int]:
    if group in policy.people.groups and not policy.excepted:
        yield from people.member_ids(database, group)
        return
    for person in people.members(database, group):
        if policy.is_for(Owner(person.name, person.groups, person.roles)):
            yield person.id
