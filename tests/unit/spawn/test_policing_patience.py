"""Which policies apply to a server, and what is waited for before it is judged."""

from types import SimpleNamespace
from typing import Any

import pytest

from gpuspawner.cluster.health import Health, Live, Stale
from gpuspawner.policy.memberships import Memberships
from gpuspawner.policy.policies import Limit, Measure, Per, Policies, Policy, What
from gpuspawner.spawn.policing import Policing

OF_USER = Policy("of user", limits=(Limit(Per.USER, Measure(What.GPUS), 2),))
OF_SERVER = Policy("of server", limits=(Limit(Per.SERVER, Measure(What.GPUS), 2),))


class Pods:
    """Lost contact until somebody waits for it; meanwhile the user joins a group."""

    def __init__(self, user: Any) -> None:
        self.waits: list[float] = []
        self._user = user
        self._health: Health = Stale(12.0, "connection reset by peer")

    def health(self) -> Health:
        return self._health

    async def live(self, patience: float) -> bool:
        self.waits.append(patience)
        self._health = Live(0.0)
        self._user.groups.append(SimpleNamespace(name="course", roles=[]))
        return True


def policing(*policies: Policy) -> tuple[Policing, Pods]:
    user = SimpleNamespace(name="ann", groups=[], roles=[], db=None)
    pods = Pods(user)
    accounts = SimpleNamespace(following=pods, memberships=Memberships())
    runtime: Any = SimpleNamespace(policies=Policies(policies), accounts=accounts)
    spawner: Any = SimpleNamespace(user=user, name="")
    return Policing(spawner, runtime), pods


async def test_it_waits_until_servers_can_be_counted_and_then_reads_the_owner_again() -> None:
    judging, pods = policing(OF_USER)

    applying = await judging.applying(patience=7)

    assert pods.waits == [7]
    assert applying.owner.groups == {"course"}


@pytest.mark.parametrize("policies", [(), (OF_SERVER,)], ids=["no policies", "no counts"])
async def test_it_waits_for_nothing_that_it_doesn_t_need(policies: tuple[Policy, ...]) -> None:
    judging, pods = policing(*policies)

    await judging.applying(patience=7)

    assert pods.waits == []
