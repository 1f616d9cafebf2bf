"""The members of groups, as the hub's database says; read again every few seconds at most."""

import time
from collections.abc import Iterator
from typing import Any

import msgspec

from gpuspawner.compat import people
from gpuspawner.kube.recent import Recent
from gpuspawner.policies.charges import Who
from gpuspawner.policies.owner import Owner
from gpuspawner.policies.policies import Policy

KEPT_SECONDS = 5.0
"""How long the members of a group are kept. A server's owner is always read anew."""
MOST = 1000
"""The members of how many groups are kept, by policy: a function may write ever new ones."""


class Memberships:
    """The members of groups, by policy."""

    def __init__(self, kept: float = KEPT_SECONDS) -> None:
        self._kept = kept
        self._found = Recent[tuple[str, str], "_Kept"](MOST)

    def ids(self, database: Any, policy: Policy, group: str) -> frozenset[Who]:
        """Return the ids of the members of a group to whom the policy applies."""
        now = time.monotonic()
        kept = self._found.get((policy.name, group))
        if (
            kept is None
            or now >= kept.until
            or (policy is not kept.policy and policy != kept.policy)
        ):
            ids = frozenset(_members(database, policy, group))
            kept = self._found[policy.name, group] = _Kept(policy, now + self._kept, ids)
        return kept.ids


def _members(database: Any, policy: Policy, group: str) -> Iterator[int]:
    if group in policy.people.groups and not policy.excepted:
        yield from people.member_ids(database, group)
        return
    for person in people.members(database, group):
        if policy.is_for(Owner(person.name, person.groups, person.roles)):
            yield person.id


class _Kept(msgspec.Struct, frozen=True):
    policy: Policy
    until: float
    ids: frozenset[Who]
