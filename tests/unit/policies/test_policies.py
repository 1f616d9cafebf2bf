"""Which policies apply to a server, and what several of them mean together."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpuspawner.policies.charges import Charge
from gpuspawner.policies.owner import Names, Owner
from gpuspawner.policies.policies import (
    Hours,
    Limit,
    Measure,
    Per,
    Policies,
    Policy,
    What,
    lifetime,
)
from gpuspawner.policies.usage import Usage
from tests.unit.makers.policy_worlds import GPUS, counts, key, owners, people, policies

pytestmark = pytest.mark.each_python

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str) -> datetime:
    """A moment in Berlin; 2026-11-23 is a Monday."""
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN)


@pytest.mark.parametrize(
    ("written", "inside", "outside"),
    [
        ("Mon-Fri 08:00-18:00", "2026-11-23T08:00", "2026-11-23T18:00"),
        ("Mon-Fri 08:00-18:00", "2026-11-27T17:59", "2026-11-28T12:00"),
        ("Sat-Sun", "2026-11-28T00:00", "2026-11-30T00:00"),
        ("Fri-Mon", "2026-11-30T23:59", "2026-12-01T00:00"),
        ("wed", "2026-11-25T12:00", "2026-11-24T12:00"),
        ("22:00-06:00", "2026-11-23T03:00", "2026-11-23T06:00"),
        ("Fri 22:00-06:00", "2026-11-28T05:59", "2026-11-27T05:59"),
        ("Fri 22:00-06:00", "2026-11-27T22:00", "2026-11-28T22:00"),
        ("08:00-24:00", "2026-11-23T23:59", "2026-11-23T07:59"),
        ("09:00-09:00", "2026-11-23T08:59", None),
    ],
)
def test_a_moment_is_within_the_hours_or_not(written, inside, outside) -> None:
    hours = Hours.parse(written, BERLIN)

    assert hours.include(at(inside))
    assert outside is None or not hours.include(at(outside))


def test_hours_are_those_of_the_time_zone() -> None:
    hours = Hours.parse("Mon 00:00-01:00", BERLIN)

    assert hours.include(datetime(2026, 11, 22, 23, 30, tzinfo=UTC))
    assert not hours.include(datetime(2026, 11, 23, 0, 30, tzinfo=UTC))


@pytest.mark.parametrize(
    "written",
    ["", " ", "Mon-", "8-18", "Mon08:00-18:00", "25:00-26:00", "Mon 08:00", "24:00-01:00"],
)
def test_other_texts_are_no_hours(written) -> None:
    with pytest.raises(ValueError, match=r"neither days nor hours|must be in"):
        Hours.parse(written, BERLIN)


MONDAY = datetime(2026, 11, 23, 12, tzinfo=UTC)
SUNDAY = MONDAY - timedelta(days=1)
ANN = Owner("ann", frozenset({"course", "staff"}), frozenset({"user"}))


@pytest.mark.parametrize(
    ("policy", "applies"),
    [
        (Policy("p"), True),
        (Policy("p", people(users=("ann",))), True),
        (Policy("p", people(users=("bob",))), False),
        (Policy("p", people(roles=("admin",))), False),
        (Policy("p", excepted=people(groups=("staff",))), False),
        (Policy("p", people(users=("ann",)), excepted=people(roles=("user",))), False),
        (Policy("p", people(groups=("course",), roles=("admin",))), True),
        (Policy("p", people(groups=("other",), roles=("user",))), True),
        (Policy("p", people(groups=("other",), users=("ann",))), True),
        (Policy("p", people(groups=("other", "st*"))), True),
        (Policy("p", people(groups=("other", "staff"))), True),
        (Policy("p", people(groups=("other",), roles=("admin",), users=("bob",))), False),
        (Policy("p", people(groups=("other",))), False),
        (Policy("p", people(groups=("course",)), excepted=people(roles=("user",))), False),
    ],
)
def test_a_policy_is_for_its_people_without_those_excepted(policy, applies) -> None:
    assert policy.is_for(ANN) is applies
    assert policy.applies(ANN, MONDAY) is applies
    assert (policy in Policies((policy,)).applying(ANN, MONDAY)) is applies


@pytest.mark.parametrize(
    ("servers", "excepted", "server", "covered"),
    [
        (None, [], "", True),
        (None, [], "train", True),
        ([""], [], "", True),
        ([""], [], "train", False),
        (["?*"], [], "", False),
        (["exp-*", "train"], [], "train", True),
        (["exp-*", "train"], [], "EXP-1", False),
        (["*"], ["train"], "train", False),
        (["*"], ["tr*", "x"], "train", False),
        (["*"], [""], "train", True),
    ],
)
def test_a_policy_covers_the_servers_whose_names_match_without_those_excepted(
    servers, excepted, server, covered
) -> None:
    named = None if servers is None else Names.of(servers)
    policy = Policy("p", servers=named, excepted_servers=Names.of(excepted))

    assert policy.covers(server) is covered
    assert policy.applies(replace(ANN, server=server), MONDAY) is covered


def test_a_policy_with_hours_applies_during_one_of_them_only() -> None:
    zone = ZoneInfo("UTC")
    policy = Policy("p", hours=tuple(Hours.parse(it, zone) for it in ("Sun", "Mon 08:00-12:00")))

    assert policy.applies(ANN, SUNDAY)
    assert not policy.applies(ANN, MONDAY)
    assert policy.applies(ANN, MONDAY - timedelta(minutes=1))


@given(policies, owners)
def test_which_policies_apply_is_found_as_if_each_was_asked(known, owner) -> None:
    expected = tuple(it for it in known if it.applies(owner, MONDAY))

    assert Policies(tuple(known)).applying(owner, MONDAY) == expected


@pytest.mark.parametrize(
    ("groups", "charged"),
    [
        ((), ()),
        (("staff",), ("staff",)),
        (("*",), ("course", "staff")),
        (("c*", "course", "none"), ("course",)),
    ],
)
def test_the_owner_s_groups_that_a_policy_names_each_have_a_share(groups, charged) -> None:
    assert Policy("p", people(users=("ann",), groups=groups)).charged_groups(ANN) == charged


# What several policies mean together: each that applies holds


def test_each_group_has_a_share_of_its_own_and_a_member_of_two_needs_room_in_both() -> None:
    policy = Policy("p", people(groups=("*",)), limits=(Limit(Per.GROUP, Measure(What.GPUS), 2),))
    bob = Owner("bob", frozenset({"course", "staff"}))
    usage = Usage()
    usage.put(key(Owner("ann")), Charge(frozenset({"ann"}), "", {GPUS: 2}))  # of course only
    asked = Charge(frozenset({"bob"}), "", {GPUS: 1})

    [denial] = counts(usage, bob, [policy]).over_limits(asked)

    assert (denial.standing.group, denial.standing.used) == ("course", 2)


@given(policies, owners, st.lists(st.none() | st.integers(60, 600), min_size=5, max_size=5))
def test_one_more_policy_never_lengthens_a_lifetime(known, owner, lifetimes) -> None:
    known = [replace(it, lifetime=end) for it, end in zip(known, lifetimes, strict=False)]
    ends = lifetime(Policies(tuple(known)).applying(owner, MONDAY))

    for policy in known:
        fewer = Policies(tuple(it for it in known if it is not policy))
        without = lifetime(fewer.applying(owner, MONDAY))
        assert without is None or (ends is not None and ends <= without)
