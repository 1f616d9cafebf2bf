"""What policies withhold, and that every limit holds in any order of starts, stops and policies."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import UTC, datetime
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpuspawner.offers.offers import Offers
from gpuspawner.policies.charges import Charge
from gpuspawner.policies.limits import (
    Counts,
    OfferKind,
    OverLimit,
    Standing,
    Wanted,
    Withheld,
    withheld,
)
from gpuspawner.policies.owner import Names, Owner, People
from gpuspawner.policies.policies import Amount, Limit, Measure, Per, Policies, Policy, What
from gpuspawner.policies.usage import Usage, most
from tests.unit.makers.policy_worlds import (
    GPUS,
    GROUPS,
    T4S,
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
from tests.unit.makers.writing import policy

ANN = Owner("ann", frozenset({"course"}))
NOW = datetime(2026, 1, 1, tzinfo=UTC)
EVERYTHING = Wanted("t4", "pytorch", "large")


def test_a_policy_may_name_a_profile_among_accelerators_as_its_slug_is_spelt() -> None:
    """It is read like the key of a model that the hub may discover: in small letters."""
    read = policy(Offers.parse(), accelerators=["A100_Big", "T4"])

    assert not [*withheld([read], Wanted("A100_Big"))]
    assert not [*withheld([read], Wanted("t4"))]
    assert [it.key for it in withheld([read], Wanted("A100_Small"))] == ["A100_Small"]


def test_a_profile_that_is_named_by_its_slug_may_get_its_gpu_from_a_hook() -> None:
    read = policy(Offers.parse(), accelerators=["big"])

    assert not [*withheld([read], Wanted("nvidia.com/gpu", profile="big"))]
    assert [*withheld([read], Wanted("nvidia.com/gpu", profile="small"))]


@pytest.mark.parametrize(
    ("policy", "denied"),
    [
        (Policy("p"), []),
        (Policy("p", accelerators=frozenset({"t4"})), []),
        (Policy("p", accelerators=frozenset({"a100"})), [OfferKind.ACCELERATOR]),
        (Policy("p", images=frozenset()), [OfferKind.IMAGE]),
        (Policy("p", profiles=frozenset({"small"})), [OfferKind.PROFILE]),
        (
            Policy("p", accelerators=frozenset(), images=frozenset(), profiles=frozenset()),
            [OfferKind.ACCELERATOR, OfferKind.IMAGE, OfferKind.PROFILE],
        ),
    ],
)
def test_what_a_policy_does_not_leave_on_offer_is_withheld(policy, denied) -> None:
    keys = {OfferKind.ACCELERATOR: "t4", OfferKind.IMAGE: "pytorch", OfferKind.PROFILE: "large"}

    expected = [Withheld(policy, it, keys[it]) for it in denied]
    assert list(withheld([policy], EVERYTHING)) == expected


def test_a_server_without_a_choice_of_a_kind_is_not_denied_one() -> None:
    nothing = Policy("p", accelerators=frozenset(), images=frozenset(), profiles=frozenset())

    assert not list(withheld([nothing], Wanted()))


def test_each_policy_that_withholds_something_says_so() -> None:
    none, also_none = (Policy(name, accelerators=frozenset()) for name in "ab")

    assert [it.policy.name for it in withheld([none, also_none], EVERYTHING)] == ["a", "b"]


def over(policy: Policy, asked: int | Fraction, running: int = 0) -> list[OverLimit]:
    usage = usage_of([(replace(ANN, server="other"), {GPUS: running})])
    return list(counts(usage, ANN, [policy]).over_limits(charge(ANN, {GPUS: asked})))


@pytest.mark.parametrize(
    ("most", "running", "asked", "is_denied"),
    [
        (2, 0, 2, False),
        (2, 0, 3, True),
        (2, 1, 1, False),
        (2, 1, 2, True),
        (2, 2, 1, True),
        (2, 5, 1, True),  # as after its policy has become narrower
        (0, 0, 1, True),
        (1, 0, Fraction(8, 7), True),
        (1, 0, Fraction(7, 7), False),
        (Fraction(3, 7), 0, Fraction(3, 7), False),
    ],
)
def test_a_server_is_over_a_limit_if_it_takes_more_than_is_left(
    most, running, asked, is_denied
) -> None:
    policy = Policy("p", limits=(Limit(Per.USER, GPUS, most),))

    found = [(it.asked, it.standing.used, it.policy) for it in over(policy, asked, running)]

    assert found == [(asked, running, policy)] * is_denied


def test_what_never_passes_comes_first() -> None:
    policy = Policy(
        "p",
        people(groups=("course",)),
        limits=(
            Limit(Per.USER, GPUS, 4),
            Limit(Per.GROUP, GPUS, 4),
            Limit(Per.SERVER, GPUS, 1),
            Limit(Per.USER, T4S, 0),
        ),
    )

    found = over(policy, 2, running=3)

    assert [(it.standing.limit.per, it.may_pass) for it in found] == [
        (Per.SERVER, False),
        (Per.USER, True),
        (Per.GROUP, True),
    ]


def denied(known: list[Policy], owner: Owner, usage: Usage, taken: dict) -> set:
    """Return which limits a server would break."""
    found = counts(usage, owner, known).over_limits(charge(owner, taken))
    return {(it.policy.name, it.standing.limit, it.standing.group) for it in found}


@given(policies, servers, owners, amounts)
def test_every_denial_is_more_than_is_left_of_its_limit(known, running, owner, taken):
    usage = usage_of(running)

    for denial in counts(usage, owner, known).over_limits(charge(owner, taken)):
        standing = denial.standing
        assert denial.asked > standing.left >= 0
        assert standing.left == max(0, standing.limit.most - standing.used)
        assert denial.may_pass is (denial.asked <= standing.limit.most)
        assert bool(standing.group) is (standing.limit.per is Per.GROUP)


@given(policies, servers, owners, amounts)
def test_a_smaller_server_is_never_denied_what_a_larger_one_gets(known, running, owner, taken):
    usage = usage_of(running)
    smaller = {measure: amount - 1 for measure, amount in taken.items() if amount}

    assert denied(known, owner, usage, smaller) <= denied(known, owner, usage, taken)


@given(policies, servers, owners, amounts)
def test_a_server_that_ends_never_makes_a_denial(known, running, owner, taken):
    usage = usage_of(running)
    before = denied(known, owner, usage, taken)
    for other, _ in running:
        usage.put(key(other), None)
        after = denied(known, owner, usage, taken)
        assert after <= before
        before = after


def test_a_named_server_of_the_owner_is_told_only_if_it_takes_part_of_the_limit() -> None:
    other = Owner("bob", frozenset({"course"}), server="secret")
    taken = {"gpu": {GPUS: 1}, "cpu": {}}
    hers = ((replace(ANN, server=name), it) for name, it in taken.items())
    usage = usage_of([*hers, (other, {GPUS: 1})])
    policy = Policy(
        "p",
        people(groups=("course",)),
        limits=(Limit(Per.USER, GPUS, 1), Limit(Per.GROUP, GPUS, 2)),
    )

    found = counts(usage, ANN, [policy]).over_limits(charge(ANN, {GPUS: 1}))

    assert [it.standing.servers for it in found] == [("gpu",), ("gpu",)]


@given(policies, servers, amounts, st.sampled_from([frozenset({"course"}), frozenset({"staff"})]))
def test_so_many_members_can_have_one_each_as_would_get_one_after_another(
    every, running, taken, groups
) -> None:
    usage = usage_of(running)

    def ask(number: int) -> tuple[Owner, tuple[Policy, ...], OverLimit | None]:
        owner = Owner(f"new-{number}", groups)
        theirs = tuple(it for it in every if it.applies(owner, NOW))
        new = charge(owner, taken)
        return owner, theirs, next(counts(usage, owner, theirs).over_limits(new), None)

    owner, theirs, denied = ask(0)
    assume(denied is None)
    left, told = counts(usage, owner, theirs).left_to_members(charge(owner, taken), 5)

    for number in range(left):
        owner, theirs, denied = ask(number)
        assert denied is None
        grant = frozenset(it.name for it in theirs)
        usage.put(key(owner), dataclasses.replace(charge(owner, taken), policies=grant))
    denied = ask(left)[2]
    assert (told is None) == (left == 5)
    if told is not None:
        assert denied == told


def judged(known: list[Policy], owner: Owner, usage: Usage, asked: Charge) -> list[Standing]:
    applying = Policies(tuple(known)).applying(owner, NOW)
    return [it.standing for it in counts(usage, owner, applying).over_limits(asked)]


def used(one: Policy, limit: Limit, usage: Usage) -> Iterator[Amount]:
    """What is used of a limit, by each user for whom the policy is, or by each group."""
    known = [it for it in GROUPS if one.is_for(Owner(it, frozenset(GROUPS[it])))]
    names: list[frozenset[str]] = []
    if limit.per is Per.USER:
        names = [frozenset({it}) for it in known]
    elif limit.per is Per.GROUP:
        named = (it for it in ("course", "staff") if it in one.people.groups)
        names = [members(one, it) for it in named]
    return (
        sum(
            most((c for c in charges if one.covers(c.server)), limit.measure)
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
    for one in known:
        for limit in one.limits:
            assert all(it <= limit.most for it in used(one, limit, usage))


@given(policies, servers, owners, amounts)
def test_without_a_policy_only_its_own_denials_are_missing(known, running, owner, taken):
    usage = usage_of(running)
    asked = charge(owner, taken)
    before = judged(known, owner, usage, asked)

    for one in known:
        left = [it for it in known if it != one]
        remaining = [it for it in before if it.policy != one]
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
