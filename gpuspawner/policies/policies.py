"""What a policy says, and which policies apply to a server.

Every policy that applies counts, and a server needs the consent of each. So the order of policies
doesn't matter, one more policy never allows more, and a user in two groups obeys the rules of both.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, time, timedelta
from enum import StrEnum
from fractions import Fraction
from functools import cached_property, reduce
from typing import NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from gpuspawner.policies.owner import NO_NAMES, NOBODY, Names, Owner, People
from gpuspawner.reservations.granted import WhenIdle
from gpuspawner.troubles.facts import DAYS_KEPT

# The hours of the week in which a policy holds, such as ``Mon-Fri 08:00-18:00``.

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY = "|".join(DAYS)
_WRITTEN = re.compile(
    rf"(?:(?P<first>{_DAY})(?:-(?P<last>{_DAY}))?(?:\s+|$))?"
    r"(?:(?P<start>\d\d:\d\d)-(?P<end>\d\d:\d\d))?",
    re.IGNORECASE,
)
_NIGHT = timedelta(days=1)


class Hours(msgspec.Struct, frozen=True):
    """The same hours on some days of the week.

    Attributes:
        days: 0 for Monday to 6 for Sunday; the days on which the hours begin.
        start: Of the day.
        end: Not included; if it isn't after the start, it is on the next day.
        zone: The time zone of both.
    """

    days: frozenset[int]
    start: time
    end: time
    zone: ZoneInfo

    @classmethod
    def parse(cls, text: str, zone: ZoneInfo) -> "Hours":
        """Read days, hours or both: ``Sat-Sun``, ``22:00-06:00``, ``Mon-Fri 08:00-18:00``.

        Raises:
            ValueError: It is nothing of this.
        """
        found = _WRITTEN.fullmatch(text.strip())
        if found is None or not text.strip():
            raise ValueError("it is neither days nor hours")
        first, last = found["first"], found["last"] or found["first"]
        return cls(
            _days(first, last) if first else frozenset(range(7)),
            time.fromisoformat(found["start"] or "00:00"),
            _end(found["end"] or "24:00"),
            zone,
        )

    def include(self, moment: datetime) -> bool:
        """Whether a moment, with a time zone, is within these hours."""
        there = moment.astimezone(self.zone)
        now = there.time()
        if self.start < self.end:
            return there.weekday() in self.days and self.start <= now < self.end
        if now >= self.start:
            return there.weekday() in self.days
        return now < self.end and (there - _NIGHT).weekday() in self.days


def _days(first: str, last: str) -> frozenset[int]:
    """The days from the first to the last, over the end of the week if need be."""
    start, end = DAYS.index(first.capitalize()), DAYS.index(last.capitalize())
    return frozenset((start + step) % 7 for step in range((end - start) % 7 + 1))


def _end(text: str) -> time:
    """The end of some hours; 24:00 is the next day's 00:00."""
    return time() if text == "24:00" else time.fromisoformat(text)


Amount = int | Fraction
"""GPUs, bytes of memory, millicores of CPU, or servers. Whole numbers are ints."""


class What(StrEnum):
    """What a limit counts.

    A new one has its keys in `policies_config.WrittenPolicy`, and its words in `messages.policies`
    and in the help of `traits.policies`. `charges` counts it: for what pods request, by a line of
    `REQUESTED`. If users can choose it on the form, `allowed_offers` leaves what a limit allows.
    """

    GPUS = "gpus"
    MEMORY = "memory"
    CPU = "cpu"
    GPU_SERVERS = "gpu_servers"


def names_resource(of: str) -> bool:
    """Return whether a limit is for a resource; the key of an accelerator has no slash."""
    return "/" in of


class Measure(NamedTuple):
    """What a limit counts. A tuple, because gates look up a hundred of them.

    Attributes:
        of: The key of an accelerator or the name of a resource; "" for all GPUs.
    """

    what: What
    of: str = ""

    @property
    def counts_gpus(self) -> bool:
        """Whether only servers with GPUs take part of it."""
        return self.what in (What.GPUS, What.GPU_SERVERS)


class Per(StrEnum):
    """Whose servers a limit counts together."""

    SERVER = "server"
    USER = "user"
    GROUP = "group"


class Limit(msgspec.Struct, frozen=True):
    """At most so much, together.

    Attributes:
        most: GPUs, bytes, millicores or servers.
    """

    per: Per
    measure: Measure
    most: Amount

    @property
    def key(self) -> str:
        """The key of a policy that sets it: ``gpus_per_user['t4']``."""
        part = f"[{self.measure.of!r}]" if self.measure.of else ""
        return f"{self.measure.what}_per_{self.per}{part}"

    @property
    def counts_others(self) -> bool:
        """Whether it counts other servers."""
        return self.per is not Per.SERVER


class Policy(msgspec.Struct, frozen=True):
    """One policy.

    Attributes:
        people: Whom it applies to; if there are none, everybody.
        excepted: Whom it doesn't apply to, even if they are among the people.
        servers: Names of servers; None for all. A limit counts only these servers.
        excepted_servers: Names of servers for which it isn't.
        hours: When it holds; empty for always.
        accelerators, profiles, images: The keys that it leaves on offer; None for all.
        limits: The most that it allows.
        lifetime: Seconds after which a server with a GPU ends; None for no end.
        idle: When a server is given back whose GPUs aren't used; None for never.
        explanation: The administrator's words for those whom it denies something; may be empty.
        shows_withheld: Whether the form shows what the policy denies, greyed and with the reason.
    """

    name: str
    people: People = NOBODY
    excepted: People = NOBODY
    servers: Names | None = None
    excepted_servers: Names = NO_NAMES
    hours: tuple[Hours, ...] = ()
    accelerators: frozenset[str] | None = None
    profiles: frozenset[str] | None = None
    images: frozenset[str] | None = None
    limits: tuple[Limit, ...] = ()
    lifetime: int | None = None
    idle: WhenIdle | None = None
    explanation: str = ""
    shows_withheld: bool = False

    @property
    def counts_others(self) -> bool:
        """Whether a limit counts other servers."""
        return any(it.counts_others for it in self.limits)

    def applies(self, owner: Owner, now: datetime) -> bool:
        """Whether the policy is for this server at this moment, which has a time zone."""
        return (
            self.is_for(owner)
            and self.covers(owner.server)
            and (not self.hours or any(hours.include(now) for hours in self.hours))
        )

    def is_for(self, owner: Owner) -> bool:
        """Whether the policy is for the servers of this owner."""
        included = not self.people or self.people.include(owner)
        return included and not self.excepted.include(owner)

    def covers(self, server: str) -> bool:
        """Whether the policy is for servers of this name; the default server's is ""."""
        named = self.servers is None or server in self.servers
        return named and server not in self.excepted_servers

    def charged_groups(self, owner: Owner) -> tuple[str, ...]:
        """The owner's groups that the policy names; each has a share of its own."""
        return tuple(sorted(self.people.groups.among(owner.groups)))


class Policies(msgspec.Struct, frozen=True, dict=True):
    """All policies of a hub."""

    policies: tuple[Policy, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.policies)

    @property
    def count_others(self) -> bool:
        """Whether a limit counts other servers."""
        return any(it.counts_others for it in self.policies)

    def unmeasured(self, gpu_use: object) -> Iterator[str]:
        """Say of which policies idle servers can't be found or kept, with this value of `gpu_use`.

        A hub that restarts knows from its files that a server is kept, as long as it has them.
        """
        use = gpu_use if isinstance(gpu_use, Mapping) else {}
        days = use.get("days", DAYS_KEPT)
        for name, idle in ((it.name, it.idle) for it in self.policies if it.idle is not None):
            if not use.get("prometheus"):
                yield (
                    f"GPUSpawner.policies[{name!r}].idle needs GPUSpawner.gpu_use with the "
                    "key 'prometheus': without it, nobody knows which servers are idle"
                )
            if use.get("directory") and idle.kept > days * 86400:
                yield (
                    f"GPUSpawner.policies[{name!r}].idle.kept is longer than {days} days; "
                    "GPUSpawner.gpu_use must keep the record for as long, by the key 'days'"
                )

    def applying(self, owner: Owner, now: datetime) -> tuple[Policy, ...]:
        """Return the policies that apply to a server at this moment, by name."""
        everybody, by_group = self._sorted
        found = everybody.union(*(by_group.get(it, frozenset()) for it in owner.groups))
        possible = (self.policies[number] for number in sorted(found))
        return tuple(it for it in possible if it.applies(owner, now))

    @cached_property
    def _sorted(self) -> tuple[frozenset[int], Mapping[str, frozenset[int]]]:
        """The numbers of policies that may be for everybody, and of those for one group only.

        Most policies of a large hub are for groups, and most users are in few of them.
        """
        everybody: set[int] = set()
        by_group: dict[str, frozenset[int]] = {}
        for number, policy in enumerate(self.policies):
            people = policy.people
            if people.users or people.roles or people.groups.patterns or not people.groups:
                everybody.add(number)
                continue
            for group in people.groups.plain:
                by_group[group] = by_group.get(group, frozenset()) | {number}
        return frozenset(everybody), by_group


def lifetime(policies: Iterable[Policy]) -> int | None:
    """Return the shortest lifetime of these policies, in seconds; None if none has one."""
    return min((it.lifetime for it in policies if it.lifetime is not None), default=None)


def when_idle(policies: Iterable[Policy]) -> WhenIdle | None:
    """Return the strictest of what these policies say of idle servers; None if none says it."""
    found = [it.idle for it in policies if it.idle is not None]
    return reduce(WhenIdle.strictest, found) if found else None
