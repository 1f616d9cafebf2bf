"""What policies withhold, and which limits a server breaks; as facts."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpuspawner.offers.offers import Offers
from gpuspawner.policies.denial import (
    OfferKind,
    OverLimit,
    Wanted,
    Withheld,
    left_to_members,
    over_limits,
    withheld,
)
from gpuspawner.policies.owner import Owner
from gpuspawner.policies.policies import Limit, Per, Policy
from gpuspawner.policies.usage import Usage
from tests.unit.makers.policy_worlds import (
    GPUS,
    T4S,
    amounts,
    charge,
    counts,
    key,
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
    return list(over_limits(counts(usage, ANN, [policy]), charge(ANN, {GPUS: asked})))


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
    found = over_limits(counts(usage, owner, known), charge(owner, taken))
    return {(it.policy.name, it.standing.limit, it.standing.group) for it in found}


@given(policies, servers, owners, amounts)
def test_every_denial_is_more_than_is_left_of_its_limit(known, running, owner, taken):
    usage = usage_of(running)

    for denial in over_limits(counts(usage, owner, known), charge(owner, taken)):
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

    found = over_limits(counts(usage, ANN, [policy]), charge(ANN, {GPUS: 1}))

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
        return owner, theirs, next(over_limits(counts(usage, owner, theirs), new), None)

    owner, theirs, denied = ask(0)
    assume(denied is None)
    left, told = left_to_members(counts(usage, owner, theirs), charge(owner, taken), 5)

    for number in range(left):
        owner, theirs, denied = ask(number)
        assert denied is None
        grant = frozenset(it.name for it in theirs)
        usage.put(key(owner), dataclasses.replace(charge(owner, taken), policies=grant))
    denied = ask(left)[2]
    assert (told is None) == (left == 5)
    if told is not None:
        assert denied == told
