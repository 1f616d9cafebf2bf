"""The policies of the race, and what they mean: written again without the package's own code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

ACCELERATORS = {"t4": "Tesla T4", "a100": "NVIDIA A100"}
EXPERIMENTS = ("exp-1", "exp-2")
SERVERS = ("", "work", *EXPERIMENTS)
"""The names of servers in the race; "" is the default server."""

CONFIGURATION = """
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
    """A server as its pod shows it, or as someone asks for it.

    Attributes:
        name: "" for the default server.
        accelerator: "" without a GPU.
    """

    owner: str
    name: str = ""
    accelerator: str = ""
    gpus: int = 0

    @property
    def options(self) -> dict[str, Any]:
        return {"accelerator": self.accelerator, "gpus": self.gpus}


@dataclass(frozen=True)
class Limit:
    """A limit on servers together.

    Attributes:
        name: Its name in the table.
        told: How a refusal names it.
        takes: How much a server takes of it; 0 if it isn't about the server.
        account: Whose servers count together with this one: a user's or a group's.
    """

    name: str
    most: int
    told: str
    takes: Callable[[Server], int]
    account: Callable[[Server], str]


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
        return CONFIGURATION.format(groups=groups)

    @property
    def limits(self) -> tuple[Limit, ...]:
        """All limits on more than one server."""
        teachers, lab = self.groups["teachers"], self.groups["lab"]
        students = self.groups["course"] - teachers

        def of_gpus(people: Collection[str]) -> Callable[[Server], int]:
            return lambda it: it.gpus if it.owner in people else 0

        def of_servers(it: Server) -> int:
            return int(it.gpus > 0 and it.owner not in teachers)

        def of_experiments(it: Server) -> int:
            return int(it.gpus > 0 and it.name.startswith("exp-"))

        def of_a100(it: Server) -> int:
            return it.gpus if it.owner in lab and it.accelerator == "a100" else 0

        def user(it: Server) -> str:
            return it.owner

        others = set(self.people) - teachers
        at_most = "You can have {}"
        return (
            Limit("a user's GPUs", 3, at_most.format("3 GPUs"), of_gpus(others), user),
            Limit("a user's servers", 2, at_most.format("2 servers with a GPU"), of_servers, user),
            Limit("a teacher's GPUs", 6, at_most.format("6 GPUs"), of_gpus(teachers), user),
            Limit(
                "the course's GPUs",
                8,
                "The group course can have 8 GPUs",
                of_gpus(students),
                lambda _: "course",
            ),
            Limit(
                "the lab's A100s",
                4,
                "The group lab can have 4 × NVIDIA A100",
                of_a100,
                lambda _: "lab",
            ),
            Limit(
                "a user's experiments",
                1,
                at_most.format("1 server with a GPU"),
                of_experiments,
                user,
            ),
        )


class Books:
    """What each user and each group holds of the limits."""

    def __init__(self, limits: Iterable[Limit]) -> None:
        self._limits = tuple(limits)
        self._used: Counter[tuple[str, str]] = Counter()
        self.peaks: Counter[str] = Counter()

    def add(self, server: Server) -> list[str]:
        """Count a server; return a sentence for each limit that is exceeded now."""
        exceeded = []
        for limit in self._limits:
            if not (taken := limit.takes(server)):
                continue
            account = (limit.name, limit.account(server))
            self._used[account] += taken
            self.peaks[limit.name] = max(self.peaks[limit.name], self._used[account])
            if self._used[account] > limit.most:
                exceeded.append(f"{account[1]} holds {self._used[account]} of {limit.name}")
        return exceeded

    def remove(self, server: Server) -> None:
        """Count a server no more."""
        for limit in self._limits:
            self._used[limit.name, limit.account(server)] -= limit.takes(server)

    def used(self, limit: Limit, server: Server) -> int:
        """Return what counts toward this limit beside one more server."""
        return self._used[limit.name, limit.account(server)]

    def against(self, server: Server) -> list[Limit]:
        """Return the limits that one more server would exceed."""
        return [
            limit
            for limit in self._limits
            if (taken := limit.takes(server)) and self.used(limit, server) + taken > limit.most
        ]
