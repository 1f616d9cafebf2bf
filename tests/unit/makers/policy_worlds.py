"""Random policies, owners and servers, for property tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import strategies as st

from gpuspawner.policies.charges import Charge
from gpuspawner.policies.limits import Counts
from gpuspawner.policies.owner import Names, Owner, People
from gpuspawner.policies.policies import Limit, Measure, Per, Policy, What
from gpuspawner.policies.usage import Usage

GPUS, T4S = Measure(What.GPUS), Measure(What.GPUS, "t4")
MEASURES = (GPUS, T4S, Measure(What.GPU_SERVERS), Measure(What.MEMORY))
GROUPS = {"ann": {"course"}, "bob": {"course", "staff"}, "cleo": set()}


def people(**listed: Sequence[str]) -> People:
    """Make people of lists of names, as an administrator writes them."""
    return People(**{kind: Names.of(names) for kind, names in listed.items()})


owners = st.builds(
    lambda name, server: Owner(name, frozenset(GROUPS[name]), server=server),
    st.sampled_from(sorted(GROUPS)),
    st.sampled_from(["", "train", "exp-1"]),
)
limits = st.builds(
    Limit, st.sampled_from(Per), st.sampled_from(MEASURES), st.integers(min_value=0, max_value=4)
)
policies = st.lists(
    st.builds(
        Policy,
        st.sampled_from("abcdefgh"),
        people=st.sampled_from(
            [
                People(),
                people(groups=["course"]),
                people(groups=["c*", "staff"]),
                people(users=["ann"], groups=["staff"]),
            ]
        ),
        excepted=st.sampled_from([People(), people(groups=["staff"])]),
        servers=st.sampled_from([None, Names.of(["exp-*"]), Names.of([""])]),
        excepted_servers=st.sampled_from([Names(), Names.of(["train"])]),
        limits=st.lists(limits, max_size=3).map(tuple),
    ),
    max_size=5,
    unique_by=lambda policy: policy.name,
)
amounts = st.fixed_dictionaries(
    {}, optional={measure: st.integers(min_value=0, max_value=3) for measure in MEASURES}
)


servers = st.lists(st.tuples(owners, amounts), max_size=10)
Changes = list[tuple[Owner, dict[Measure, Any] | None, bool]]
changes = st.lists(st.tuples(owners, st.none() | amounts, st.booleans()), max_size=30)
"""What servers take from then on, None for nothing, and whether a pod or a reservation says so."""


def key(owner: Owner) -> tuple[str, str]:
    return "jhub", f"jupyter-{owner.name}--{owner.server}"


def charge(owner: Owner, taken: dict[Measure, Any]) -> Charge:
    groups = owner.groups
    return Charge(frozenset({owner.name}), owner.server, taken, frozenset(), groups)


def usage_of(servers: Iterable[tuple[Owner, dict[Measure, Any]]]) -> Usage:
    """Return the usage of running servers: their owners, and what they take."""
    usage = Usage()
    for owner, taken in servers:
        usage.put(key(owner), charge(owner, taken))
    return usage


def change(usage: Usage, events: Changes) -> None:
    """Let these changes happen one after another."""
    for owner, taken, is_pod in events:
        charged = None if taken is None else charge(owner, taken)
        (usage.put if is_pod else usage.reserve)(key(owner), charged)


def members(policy: Policy, group: str) -> frozenset[str]:
    """The members of a group for whom the policy is."""
    return frozenset(
        name
        for name, groups in GROUPS.items()
        if group in groups and policy.is_for(Owner(name, frozenset(groups)))
    )


def counts(usage: Usage, owner: Owner, known: Iterable[Policy]) -> Counts:
    """What counts toward these policies' limits of an owner's server."""
    return Counts(tuple(known), owner, frozenset({owner.name}), usage, key(owner), members)
