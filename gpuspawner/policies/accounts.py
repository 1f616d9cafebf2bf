"""What the servers of the hub's namespace take, read from their pods as they change.

And who is in which group, as the hub's database says; read again every few seconds at most.
"""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from gpuspawner.cluster.client import ConfigurationFactory
from gpuspawner.cluster.following import Following
from gpuspawner.cluster.health import Health, Live, Reading, Stale
from gpuspawner.cluster.kinds import servers_of
from gpuspawner.cluster.wakeups import Contact
from gpuspawner.compat import people
from gpuspawner.compat.people import Person
from gpuspawner.kube.caches import KeptFor
from gpuspawner.kube.meta import Key
from gpuspawner.policies.charges import Charge, Meter, Who
from gpuspawner.policies.owner import Owner
from gpuspawner.policies.pod_owners import Claims
from gpuspawner.policies.policies import Policy
from gpuspawner.policies.usage import Ledger, Usage
from gpuspawner.reservations.granted import Granted
from gpuspawner.reservations.reservations import Counting, Reservations

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


class Accounts(Counting):
    """The usage of a namespace, kept up to date by its own watch.

    It needs only what the chart's Role grants: list and watch the pods of the hub's namespace.

    Args:
        namespace: "" for all, if each user has one.
        meter: Returns the meter of this moment.
        contact: As in `Watcher`.
        reservations: What is promised to starts whose pods aren't shown yet.

    Attributes:
        namespace, reservations: As given.
        memberships: Who is in which group.
    """

    def __init__(
        self,
        load: ConfigurationFactory,
        namespace: str,
        meter: Callable[[], Meter],
        contact: Contact,
        reservations: Reservations,
    ) -> None:
        self.namespace = namespace
        self.reservations = reservations
        reservations.counting = self
        self.usage = Usage()
        self.memberships = Memberships()
        self.ledger = Ledger(self.usage, meter, Claims(namespace, reservations.sent))
        kind = servers_of(namespace)
        self.following = Following(kind, self.ledger, load, reservations.look, contact=contact)

    def count(self, key: Key, charge: Charge | None) -> None:
        """As `Counting.count`."""
        self.usage.reserve(key, charge)

    def shown(self, key: Key) -> str:
        """As `Counting.shown`."""
        pod = self.ledger.pods.get(key)
        return pod.metadata.uid if pod is not None else ""

    def is_current(self) -> bool:
        """As `Counting.is_current`: a pod that no list shows yet may exist."""
        return not _why(self.following.health())

    def owners(self, database: Any, person: Person) -> frozenset[Who]:
        """Return how charges name a person."""
        self.read(database)
        return self.ledger.claims.owners(person)

    def read(self, database: Any) -> None:
        """Learn from the hub's database whose the pods are, once."""
        if self.ledger.claims.read(database, self.reservations.leave):
            self.ledger.count_again()
            self.reservations.look()

    def know(self, key: Key, owner: Who, server: str, granted: Granted) -> None:
        """Count the pod of this uid for a server, also if the hub forgets the server."""
        self.ledger.know(key, Charge(frozenset({owner}), server).by(granted), granted.pod)

    def ends(self, database: Any, person: Person) -> Iterator[tuple[datetime, str]]:
        """Yield when a person's servers end, and their names."""
        for key, charges in self.usage.of_owner(self.owners(database, person)).items():
            pod = self.ledger.pods.get(key)
            if pod is not None and (end := pod.ends_at) is not None:
                yield end, charges[0].server

    def trouble(self) -> str:
        """Why nothing can be counted at this moment, for administrators; "" if it can."""
        if unreadable := _why(self.following.health()):
            return f"the servers' pods can't be read: {unreadable}"
        if self.ledger.unread:
            namespace, name = min(self.ledger.unread)
            return f"nobody can tell what the pod {namespace}/{name} takes"
        self.ledger.refresh()
        self.reservations.look()
        return ""


def _why(health: Health) -> str:
    """Why pods can't be read; "" if they can."""
    match health:
        case Live():
            return ""
        case Reading():
            return "the first list isn't complete yet"
        case Stale():
            return f"the last answer is {health.age:.0f} s old: {health.why}"
        case _:
            return health.text
