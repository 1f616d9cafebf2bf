"""The policies of the race, and what they mean: written again without the package's own code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

ACCELERATORS = {"t4": "Tesla T4", "a100": "NVIDIA A100"}
SERVERS = ("", "work", "exp-1", "exp-2")
"""The names of servers in the race; "" is the default server."""

_POLICIES = """
c.JupyterHub.load_groups = {groups!r}
c.GPUSpawner.policies = {{
    "everybody": {{
        "gpus_per_user": 3, "gpu_servers_per_user": 2, "except": {{"groups": ["teachers"]}}}},
    "teachers": {{"groups": ["teachers"], "gpus_per_user": 6}},
    "course": {{
        "groups": ["course"], "gpus_per_group": 8, "except": {{"groups": ["teachers"]}}}},
    "lab": {{"groups": ["lab"], "gpus_per_group": {{"a100": 4}}}},
    "experiments": {{"servers": ["exp-*"], "gpus_per_server": 1, "gpu_servers_per_user": 1}},
}}
"""


@dataclass(frozen=True)
class Server:
    """A server with GPUs, as its pod shows it, or as someone asks for it."""

    owner: str
    name: str
    accelerator: str
    gpus: int

    @property
    def options(self) -> dict[str, Any]:
        return {"accelerator": self.accelerator, "gpus": self.gpus}


Takes = Callable[[Server], int]
"""How much a server takes of a limit; 0 if the limit isn't about the server."""


@dataclass(frozen=True)
class Limit:
    """A limit on servers together.

    Attributes:
        name: Its name in the table.
        told: How a refusal names it.
        group: Whose servers count together; "" if each user's count for themselves.
    """

    name: str
    most: int
    told: str
    takes: Takes
    group: str = ""

    def account(self, server: Server) -> str:
        """Return whose servers count together with this one: a user's or a group's."""
        return self.group or server.owner


@dataclass(frozen=True)
class Class:
    """The people of a race, and their groups."""

    people: tuple[str, ...]
    groups: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, size: int) -> Class:
        """Three of five are in the course; the lab has some of these, and some others.

        One teacher is in the course, too.
        """
        people = tuple(f"p{number}" for number in range(size))
        course, lab = people[: size * 3 // 5], people[size // 2 : size * 4 // 5]
        groups = {"course": course, "lab": lab, "teachers": (people[0], people[-1])}
        return cls(people, {name: frozenset(members) for name, members in groups.items()})

    @property
    def configuration(self) -> str:
        groups = {name: {"users": sorted(members)} for name, members in self.groups.items()}
        return _POLICIES.format(groups=groups)

    @property
    def limits(self) -> tuple[Limit, ...]:
        """All limits on more than one server."""
        teachers, lab = self.groups["teachers"], self.groups["lab"]

        def gpus(people: Collection[str], accelerators: Iterable[str] = ACCELERATORS) -> Takes:
            return lambda it: it.gpus * (it.owner in people and it.accelerator in accelerators)

        def servers(it: Server) -> int:
            return it.gpus > 0 and it.owner not in teachers

        def experiments(it: Server) -> int:
            return it.gpus > 0 and it.name.startswith("exp-")

        others, students = set(self.people) - teachers, self.groups["course"] - teachers
        of_course = "The group course can have 8 GPUs"
        of_lab = "The group lab can have 4 × NVIDIA A100"
        return (
            Limit("a user's GPUs", 3, "You can have 3 GPUs", gpus(others)),
            Limit("a user's servers", 2, "You can have 2 servers with a GPU", servers),
            Limit("a teacher's GPUs", 6, "You can have 6 GPUs", gpus(teachers)),
            Limit("the course's GPUs", 8, of_course, gpus(students), "course"),
            Limit("the lab's A100s", 4, of_lab, gpus(lab, ["a100"]), "lab"),
            Limit("a user's experiments", 1, "You can have 1 server with a GPU", experiments),
        )


class Books:
    """What each user and each group holds of the limits.

    Attributes:
        peaks: The most that anybody held at once, by limit.
    """

    def __init__(self, limits: Iterable[Limit]) -> None:
        self._limits = tuple(limits)
        self._used: Counter[tuple[str, str]] = Counter()
        self.peaks: Counter[str] = Counter()

    def add(self, server: Server) -> list[str]:
        """Count a server; return a sentence for each limit that is exceeded now."""
        against = self.against(server)
        for limit in self._limits:
            self._used[limit.name, limit.account(server)] += limit.takes(server)
            self.peaks[limit.name] = max(self.peaks[limit.name], self.used(limit, server))
        return [
            f"{it.account(server)} holds {self.used(it, server)} of {it.name}" for it in against
        ]

    def remove(self, server: Server) -> None:
        """Count a server no more."""
        for limit in self._limits:
            self._used[limit.name, limit.account(server)] -= limit.takes(server)

    def used(self, limit: Limit, server: Server) -> int:
        """Return what counts toward this limit for the owner of a server."""
        return self._used[limit.name, limit.account(server)]

    def against(self, server: Server) -> list[Limit]:
        """Return the limits that one more server would exceed."""
        return [
            limit
            for limit in self._limits
            if (taken := limit.takes(server)) and self.used(limit, server) + taken > limit.most
        ]
