"""Every limit of every policy that applies holds, in any order of starts, stops and policies."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.policies.charges import Charge
from gpuspawner.policies.denial import over_limits
from gpuspawner.policies.limits import Counts, Standing
from gpuspawner.policies.owner import Names, Owner, People
from gpuspawner.policies.policies import Amount, Limit, Measure, Per, Policies, Policy, What
from gpuspawner.policies.usage import Usage, most
from tests.unit.makers.policy_worlds import (
    GPUS,
    GROUPS,
    amounts,
    change,
    changes,
    charge,
    counts,
    key,
    members,
    owners,
    people,
    policies,
    servers,
    usage_of,
)

NOW = datetime(2026, 11, 23, tzinfo=UTC)


def judged(known: list[Policy], owner: Owner, usage: Usage, asked: Charge) -> list[Standing]:
    applying = Policies(tuple(known)).applying(owner, NOW)
    return [it.standing for it in over_limits(counts(usage, owner, applying), asked)]


def used(policy: Policy, limit: Limit, usage: Usage) -> Iterator[Amount]:
    """What is used of a limit, by each user for whom the policy is, or by each group."""
    known = [it for it in GROUPS if policy.is_for(Owner(it, frozenset(GROUPS[it])))]
    names: list[frozenset[str]] = []
    if limit.per is Per.USER:
        names = [frozenset({it}) for it in known]
    elif limit.per is Per.GROUP:
        named = (it for it in ("course", "staff") if it in policy.people.groups)
        names = [members(policy, it) for it in named]
    return (
        sum(
            most((c for c in charges if policy.covers(c.server)), limit.measure)
            for charges in usage.of_owner(it).values()
        )
        for it in names
    )


@given(policies, st.lists(st.tuples(owners, amounts), max_size=25))
def test_no_sequence_of_starts_exceeds_a_limit(known, asked):
    usage = Usage()
    for owner, taken in asked:
        charged = charge(owner, taken)
        if not judged(known, owner, usage, charged):
            usage.reserve(key(owner), charged)
            usage.put(key(owner), charged)
            usage.reserve(key(owner), None)
    for policy in known:
        for limit in policy.limits:
            assert all(it <= limit.most for it in used(policy, limit, usage))


@given(policies, servers, owners, amounts)
def test_without_a_policy_only_its_own_denials_are_missing(known, running, owner, taken):
    usage = usage_of(running)
    asked = charge(owner, taken)
    before = judged(known, owner, usage, asked)

    for policy in known:
        left = [it for it in known if it != policy]
        remaining = [it for it in before if it.policy != policy]
        assert judged(left, owner, usage, asked) == remaining


@given(servers)
def test_a_share_reads_only_the_servers_of_its_group(events):
    """A namespace may have thousands of pods, and a user hundreds of groups with shares."""
    usage = usage_of(events)

    found = usage.of_group("staff", {"ann"})

    assert found.keys() == {key(it) for it, _ in events if it.name == "ann" or "staff" in it.groups}


@given(changes)
def test_a_count_from_events_equals_a_count_from_pods(events):
    usage, again = Usage(), Usage()
    change(usage, events)
    last = {(key(owner), is_pod): (owner, taken, is_pod) for owner, taken, is_pod in events}
    change(again, [*reversed(last.values())])

    for names in ({"ann"}, {"bob", "cleo"}):
        assert usage.of_owner(names) == again.of_owner(names)
        for group in ("course", "other"):
            assert usage.of_group(group, names) == again.of_group(group, names)


def test_each_limit_counts_its_own_measure_of_the_servers_that_its_policy_is_for() -> None:
    usage, memory = Usage(), Measure(What.MEMORY)
    for server, gpus, memory_taken in (("train", 2, 16), ("exp-1", 3, 4), ("exp-2", 1, 1)):
        other = Owner("ann", server=server)
        usage.put(key(other), charge(other, {GPUS: gpus, memory: memory_taken}))
    limits = (Limit(Per.USER, GPUS, 9), Limit(Per.USER, memory, 99))
    named, ann = Names.of(["exp-*"]), Owner("ann", server="exp-3")
    known = [
        Policy("all", limits=limits),
        Policy("named", servers=named, limits=limits),
        Policy("but one", servers=named, excepted_servers=Names.of(["exp-2"]), limits=limits),
        Policy("others", excepted_servers=Names.of(["train"]), limits=limits),
    ]

    found = counts(usage, ann, known).standings()

    assert [it.used for it in found] == [6, 21, 4, 5, 3, 4, 4, 5]


def test_the_pod_that_a_start_replaces_does_not_count() -> None:
    owner = Owner("ann")
    usage = usage_of([(owner, {GPUS: 2})])
    policy = Policy("p", limits=(Limit(Per.USER, GPUS, 2),))

    assert judged([policy], owner, usage, charge(owner, {GPUS: 2})) == []


def test_a_pod_and_its_reservation_count_once() -> None:
    other = Owner("ann", server="train")
    usage = usage_of([(other, {GPUS: 1})])
    usage.reserve(key(other), charge(other, {GPUS: 2}))
    policy = Policy("p", limits=(Limit(Per.USER, GPUS, 3),))

    [standing] = counts(usage, Owner("ann"), [policy]).standings()

    assert (standing.used, standing.left, standing.servers) == (2, 1, ("train",))


def test_a_server_counts_for_the_group_of_its_start_after_its_owner_has_left() -> None:
    usage = Usage()
    charged = Charge(frozenset({"dora"}), "", {GPUS: 3}, frozenset("p"), frozenset({"course"}))
    usage.put(("jhub", "left"), charged)
    usage.put(("jhub", "old"), Charge(frozenset({"bob"}), "", {GPUS: 2}))
    policy = Policy("p", People(groups=Names.of(["course"])), limits=(Limit(Per.GROUP, GPUS, 8),))
    ann = Owner("ann", frozenset({"course"}))
    both = frozenset({"ann", "bob"})
    found = Counts((policy,), ann, frozenset({"ann"}), usage, key(ann), lambda *_: both)

    [standing] = found.standings()

    assert (standing.group, standing.used) == ("course", 5)


def test_the_owner_s_own_servers_count_for_a_group_that_was_joined_a_moment_ago() -> None:
    """The list of members may be some seconds old; whom the policy judges is known anew."""
    usage = Usage()
    usage.put(("jhub", "train"), Charge(frozenset({"ann"}), "train", {GPUS: 3}))
    policy = Policy("p", people(groups=["course"]), limits=(Limit(Per.GROUP, GPUS, 4),))
    ann = Owner("ann", frozenset({"course"}))
    found = Counts((policy,), ann, frozenset({"ann"}), usage, key(ann), lambda *_: frozenset())

    [standing] = found.standings()

    assert standing.used == 3
