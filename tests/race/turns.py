"""What everybody gets when nobody else asks: exactly what the limits allow, and no more."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.race.limits import Books, Server
from tests.race.policy_stage import PolicyStage
from tests.race.tabs import STARTED, Answer, User, Way

_WISHES = (
    ("", "t4", 2),
    ("work", "t4", 1),
    ("work", "a100", 2),
    ("exp-1", "t4", 1),
    ("exp-2", "t4", 1),
)


class Turns:
    """One user after another asks for more than the limits allow.

    They keep their servers, so the group's share is soon gone. Whoever is refused for this reason
    asks again when the others have stopped.

    Attributes:
        asked: How many servers were asked for.
        wrong: A sentence for each answer that is not the one by the limits.
    """

    def __init__(self, stage: PolicyStage, dice: random.Random) -> None:
        self.asked = 0
        self.wrong: list[str] = []
        self._stage = stage
        self._dice = dice
        self._books = Books(stage.users.limits)
        self._held: dict[tuple[str, str], Server] = {}
        self._users: dict[str, User] = {}

    def take(self, users: Sequence[User]) -> None:
        """Let each user have a turn, then stop all servers."""
        self._users = {user.name: user for user in users}
        for user in self._dice.sample(users, len(users)):
            others_have_it = [self._ask(user, wish) for wish in self._wishes(user)]
            if any(others_have_it):
                self._stop(it for it in self._held.values() if it.owner != user.name)
                for wish in self._wishes(user):
                    self._ask(user, wish)
        self._stop(self._held.values())

    def _wishes(self, user: User) -> list[Server]:
        found = [Server(user.name, *wish) for wish in _WISHES]
        return self._dice.sample(found, len(found))

    def _ask(self, user: User, wish: Server) -> bool:
        """Ask for a server; return whether others have to stop first."""
        if (wish.owner, wish.name) in self._held:
            return False
        self.asked += 1
        against = self._books.against(wish)
        told = [(it.name, self._books.used(it, wish)) for it in against]
        answer = user.tab().ask(wish, self._dice.choice(list(Way)))
        if not _is_right(answer, told):
            self.wrong.append(f"{wish} by {told or 'no limit'}: {answer.kind}: {answer.text[:300]}")
        if answer.kind == STARTED:
            self._books.add(wish)
            self._held[wish.owner, wish.name] = wish
        return any(it.account(wish) != wish.owner for it in against)

    def _stop(self, servers: Iterable[Server]) -> None:
        chosen = list(servers)
        with ThreadPoolExecutor(20) as at_once:
            list(at_once.map(lambda it: self._users[it.owner].tab().stop(it.name), chosen))
        for server in chosen:
            self._books.remove(server)
            del self._held[server.owner, server.name]


def _is_right(answer: Answer, told: list[tuple[str, int]]) -> bool:
    """Whether the answer is the one by these limits, with the figure of what is used."""
    if not told:
        return answer.kind == STARTED
    used = dict(told).get(answer.kind)
    return used is not None and any(f"{word} {used}" in answer.text for word in ("use", "uses"))
