"""What policies cost a gate: `python -m tests.benchmarks.policies`.

A namespace with 2,000 pods of 500 users, 100 policies for 50 groups, a real database. Between any
two gates a pod changes. The baseline counts the pods of the namespace anew for each gate.
"""

from __future__ import annotations

import asyncio
import logging
import statistics
import time
from types import SimpleNamespace
from typing import Any

from jupyterhub import orm, roles

from gpuspawner.cluster.client import load_configuration
from gpuspawner.cluster.health import Live
from gpuspawner.cluster.wakeups import Contact
from gpuspawner.compat.people import person
from gpuspawner.kube.objects import strict_convert
from gpuspawner.kube.servers import ServerPod
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.offers import Offers
from gpuspawner.policies.accounts import Accounts
from gpuspawner.policies.charges import Meter, as_annotated
from gpuspawner.policies.policies import Measure, What
from gpuspawner.policies.policies_config import read_policies
from gpuspawner.policies.policy_gates import ByPolicies
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.reservations.granted import STORED, Granted, mark
from gpuspawner.reservations.reservations import Reservations
from gpuspawner.scheduling.rules import DEFAULT_RULES
from gpuspawner.scheduling.state import ClusterState
from gpuspawner.scheduling.verdicts import Verdicts
from gpuspawner.start.source import Choice

PODS, USERS, GROUPS, POLICIES, TIMES = 2000, 500, 50, 100, 500
NAMESPACE = "jhub"


def granted(number: int) -> Granted:
    """What the owner of a server got."""
    return Granted("", (f"policy-{number % POLICIES}",), (f"group-{number % GROUPS}",), 3600)


def pod(user: str, number: int, gpus: int) -> dict[str, Any]:
    """A server's pod as the API server shows it."""
    resources = {"requests": {"nvidia.com/gpu": str(gpus), "memory": "4Gi", "cpu": "1"}}
    return mark(
        {
            "metadata": {
                "name": f"jupyter-{user}--{number}",
                "namespace": NAMESPACE,
                "labels": {"hub.jupyter.org/username": user},
                "annotations": {
                    "hub.jupyter.org/username": user,
                    "hub.jupyter.org/servername": f"server-{number}",
                },
            },
            "spec": {"containers": [{"name": "notebook", "env": [], "resources": resources}]},
        },
        granted(number),
    )


def database() -> Any:
    """A hub's database with the users in two groups each, and their servers."""
    made = orm.new_session_factory("sqlite:///:memory:")()
    roles.create_role(made, {"name": "user", "scopes": ["self"]})
    groups = [orm.Group(name=f"group-{number}") for number in range(GROUPS)]
    users = [orm.User(name=f"user-{number}") for number in range(USERS)]
    for number, user in enumerate(users):
        user.groups = [groups[number % GROUPS], groups[(number + 7) % GROUPS]]
    for number in range(PODS):
        user, name = users[number % USERS], f"server-{number}"
        place = {"pod_name": f"jupyter-{user.name}--{number}", "namespace": NAMESPACE}
        state = {**place, "gpuspawner": {STORED: granted(number).written()}}
        made.add(orm.Spawner(user=user, name=name, server=orm.Server(), state=state))
    made.add_all(users)
    made.commit()
    return made


def policies() -> dict[str, dict[str, object]]:
    """A limit for each user of a group, a share, and a lifetime."""
    return {
        f"policy-{number}": {
            "groups": [f"group-{number % GROUPS}"],
            "gpus_per_user": 100,
            "gpus_per_group": {"all": 1000, "nvidia.com/gpu": 900},
            "memory_per_user": "10Ti",
            "lifetime": "8h",
        }
        for number in range(POLICIES)
    }


def put(accounts: Accounts, number: int, gpus: int) -> None:
    """Show a pod."""
    user = f"user-{number % USERS}"
    accounts.ledger.put(strict_convert(pod(user, number, gpus), ServerPod))


async def measure() -> tuple[list[float], list[float]]:
    """Return the seconds of each gate, and of each count of all pods."""
    meter = Meter(DEFAULT_RULES)
    state = ClusterState()
    promises = Reservations(state, Verdicts(state))
    accounts = Accounts(load_configuration, NAMESPACE, lambda: meter, Contact(), promises)
    accounts.following.health = lambda: Live(0.0)  # type: ignore[method-assign]
    for number in range(PODS):
        put(accounts, number, 1)
    owned = database()
    hub: Any = SimpleNamespace(
        given=read_policies(policies(), {}, Offers()), accounts=accounts, meter=lambda: meter
    )
    runtime: Any = SimpleNamespace(display_names={})
    user = owned.query(orm.User).filter_by(name="user-3").one()
    owner: Any = SimpleNamespace(
        id=user.id, name=user.name, groups=user.groups, roles=user.roles, db=owned
    )
    spawner: Any = SimpleNamespace(user=owner, name="", namespace=NAMESPACE, pod_name="jupyter-x")
    policing = ByPolicies(spawner, runtime, hub)
    choice = Choice(Proposal(NAMESPACE, "jupyter-x", pod("user-3", PODS, 1), Grant()))
    names = {person(owner).name}
    gates, counts = [], []
    for number in range(TIMES):
        put(accounts, number % PODS, 1 + number % 2)
        began = time.perf_counter()
        await policing.take(choice)
        gates.append(time.perf_counter() - began)
        accounts.reservations.vacate(choice.proposal.key)
        began = time.perf_counter()
        pods = accounts.ledger.pods.values()
        everybody = (meter.charge(it, as_annotated(it)) for it in pods)
        sum(it.of(Measure(What.GPUS)) for it in everybody if not names.isdisjoint(it.owners))
        counts.append(time.perf_counter() - began)
    return gates, counts


def main() -> None:
    """Print the table."""
    logging.getLogger("alembic").setLevel(logging.WARNING)
    gates, counts = asyncio.run(measure())
    print(f"{PODS} pods, {POLICIES} policies, {GROUPS} groups, {USERS} users")
    print("| policies | median | 99th percentile | ratio to a count of all pods |")
    print("| --- |" + " ---: |" * 3)
    baseline = statistics.median(counts)
    for name, times in (("a gate", gates), ("a count of all pods", counts)):
        median, late = statistics.median(times), statistics.quantiles(times, n=100)[-1]
        print(
            f"| {name} | {median * 1000:.3f} ms | {late * 1000:.3f} ms | {median / baseline:.4f} |"
        )


if __name__ == "__main__":
    main()
