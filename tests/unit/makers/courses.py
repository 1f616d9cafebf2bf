"""A hub with policies, whose servers can be counted, and the gates of its spawners."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from jupyterhub import orm

from gpuspawner import GPUSpawner
from gpuspawner.cluster.health import Health, Live
from gpuspawner.compat.people import person
from gpuspawner.kube.servers import ServerPod
from gpuspawner.policies.accounts import Accounts
from gpuspawner.policies.pod_owners import Claims
from gpuspawner.policies.policies import Measure, What
from gpuspawner.runtime import Runtime
from gpuspawner.start.refusal import Refusal
from tests.unit.makers.hub_database import HubDatabase
from tests.unit.makers.hubs import StillHub
from tests.unit.makers.policy_pods import container, plain, read, server_pod
from tests.unit.makers.worlds import node

NODES = ("Node", node("a", 16)), ("Node", node("b", 16))
T4 = {"display_name": "T4", "counts": [1, 2, 4, 8], "node_selector": {"gpu": "a100"}}
V100 = {**T4, "display_name": "V100", "resource": "example.com/v100"}
OFFERS = {
    "accelerators": {"t4": T4, "v100": V100},
    "images": {"base": {"image": "base:1"}, "torch": {"image": "torch:1"}},
}
GPUS = Measure(What.GPUS)
ALICE = frozenset({1})
"""The id of the first user of a database."""


class Train(GPUSpawner):
    """The spawner of alice's server `train`."""

    name = "train"


class Course:
    """A hub whose user alice has groups and roles, and whose servers the hub can count.

    Attributes:
        health: How far the count can be trusted.
    """

    def __init__(self, hub: StillHub, *, admin: bool = False) -> None:
        self.hub = hub
        self.database = HubDatabase()
        self.row = self.database.user("alice", "course", admin=admin)
        self.health: Health = Live(0.1)

    def spawner(self, policies: Any, of: type[GPUSpawner] = GPUSpawner, **traits: Any) -> Any:
        offers = {} if "profile_list" in traits else OFFERS
        spawner = self.hub.spawner(of, policies=policies, **{**offers, **traits})
        user = spawner.user
        user.groups, user.roles, user.db = self.row.groups, self.row.roles, self.database.session
        following = self.accounts(spawner).following
        following.health = lambda: self.health  # type: ignore[method-assign]
        following.live = self._live  # type: ignore[method-assign]
        return spawner

    async def _live(self, timeout: float) -> bool:  # noqa: ARG002, ASYNC109, as it is there
        """Nothing changes while somebody waits."""
        return isinstance(self.health, Live)

    def of(self, spawner: Any) -> Runtime:
        return self.hub.runtime(spawner)

    def accounts(self, spawner: Any) -> Accounts:
        """What servers take; only with policies, or with a line, the hub knows it."""
        found = self.of(spawner).accounts
        assert found is not None
        return found

    def put(self, spawner: Any, user: str, server: str, gpus: int) -> None:
        """Let a server run, and its pod exist."""
        pod = server_pod(user, server, containers=[container(gpu=gpus)])
        self.put_pod(spawner, user, server, pod)

    def show(self, spawner: Any, gpus: int) -> None:
        """Let the pod of alice's own spawner exist."""
        made = plain("alice", name=spawner.pod_name, containers=[container(gpu=gpus)])
        made["metadata"]["namespace"] = spawner.namespace
        self.put_pod(spawner, "alice", "", read(made))

    def put_pod(self, spawner: Any, name: str, server: str, pod: ServerPod) -> None:
        """Let a server run that has this pod."""
        user, it = orm.User.find(self.database.session, name), pod.metadata
        self.database.server(user, server, pod_name=it.name, namespace=it.namespace)
        accounts = self.accounts(spawner)
        claims = Claims(spawner.namespace, accounts.reservations.sent)
        accounts.ledger.claims = claims  # reads it anew
        accounts.ledger.put(pod)
        accounts.owners(self.database.session, person(user))

    def hide(self, spawner: Any) -> None:
        """Let that pod be gone."""
        accounts = self.accounts(spawner)
        accounts.ledger.remove("ServerPod", spawner.namespace, spawner.pod_name)

    def counted(self, spawner: Any) -> int:
        """How many GPUs of alice's count."""
        found = self.accounts(spawner).usage.of_owner(ALICE).values()
        return sum(max(int(it.of(GPUS)) for it in charges) for charges in found)


async def begin(spawner: Any, **options: Any) -> None:
    """Run the second gate."""
    default = {} if "profile" in options else {"accelerator": "t4"}
    spawner.user_options = {**default, **options}
    begun = spawner.run_pre_spawn_hook()
    if inspect.isawaitable(begun):
        await begun


async def refused(spawner: Any, **options: Any) -> Refusal:
    """Let the second gate refuse a start."""
    with pytest.raises(Refusal) as raised:
        await begin(spawner, **options)
    return raised.value


async def refused_query(spawner: Any, **options: str) -> Refusal:
    """Let the first gate refuse a query."""
    query = {f"opt-{name}": [value] for name, value in options.items()}
    with pytest.raises(Refusal) as raised:
        await spawner.options_from_query(query)
    return raised.value


def sends(spawner: Any, then: Callable[[], Any] = lambda: None, **changes: Any) -> list[Any]:
    """Make KubeSpawner's start send its pod, with *changes* to its container's limits.

    *then* is called afterwards. Returns the pods that the API server gets.
    """
    sent: list[Any] = []

    async def create_namespaced_pod(_: str, pod: Any) -> None:
        sent.append(pod)

    async def run_start() -> None:
        pod = await spawner.get_pod_manifest()
        resources = pod.spec.containers[0].resources
        for amounts in (resources.limits, resources.requests):
            amounts.update(changes.get("limits", {}))
        await spawner._make_create_pod_request(pod, 3)
        made = then()
        if inspect.isawaitable(made):
            await made

    async def delete_pod(*_: Any) -> bool:
        return False

    spawner.api.create_namespaced_pod = create_namespaced_pod
    spawner.gpuspawner_stock.run_start = run_start
    spawner.gpuspawner_stock.stops_pod = lambda: False
    spawner.gpuspawner_stock.delete_pod = delete_pod
    return sent
