"""The members of groups, from a real database of JupyterHub, are at most some seconds old."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from sqlalchemy import event

from gpuspawner.policy.charges import owner_names
from gpuspawner.policy.memberships import KEPT_SECONDS, Memberships
from gpuspawner.policy.policies import Policy
from tests.unit.compat.hub_database import HubDatabase
from tests.unit.policy.clocks import Clock, clock_of
from tests.unit.policy.worlds import people

COURSE = Policy("course", people(groups=("course",)))

clock = pytest.fixture(clock_of("gpuspawner.policy.memberships"))


@pytest.fixture
def hub() -> HubDatabase:
    return HubDatabase()


@pytest.fixture
def memberships(clock: Clock) -> Memberships:  # noqa: ARG001, it sets the clock first
    return Memberships()


def test_members_have_the_names_that_their_pods_give_them(hub, memberships) -> None:
    hub.user("ann", "course")
    hub.user("Bob Smith", "course")
    hub.user("cleo", "staff")

    names = memberships.names(hub.session, COURSE, "course")

    assert names == {"ann", "label/ann", "Bob Smith", "label/bob-smith---7e3d8981"}


def test_members_for_whom_the_policy_is_not_do_not_count(hub, memberships) -> None:
    hub.user("ann", "course")
    hub.user("bob", "course", "staff")
    hub.user("root", "course", admin=True)
    policy = Policy(
        "course",
        people(groups=("course",)),
        excepted=people(groups=("staff",), roles=("admin",)),
    )

    assert memberships.names(hub.session, policy, "course") == owner_names("ann", "ann")


def test_a_policy_for_users_of_a_group_counts_all_members_that_it_names(hub, memberships) -> None:
    hub.user("ann", "course")
    hub.user("bob", "course")
    of_ann = Policy("p", people(users=("ann",)))

    assert memberships.names(hub.session, of_ann, "course") == owner_names("ann", "ann")


@pytest.mark.parametrize("group", ["nobody", "", "cour*"])
def test_a_group_that_does_not_exist_has_no_members(group, hub, memberships) -> None:
    hub.user("ann", "course")

    assert memberships.names(hub.session, COURSE, group) == set()


def test_members_are_read_again_after_some_seconds(hub, memberships, clock) -> None:
    hub.user("ann", "course")
    memberships.names(hub.session, COURSE, "course")
    hub.user("bob", "course")

    clock.now += KEPT_SECONDS - 0.1
    assert "bob" not in memberships.names(hub.session, COURSE, "course")
    clock.now += 0.1

    assert "bob" in memberships.names(hub.session, COURSE, "course")


def test_many_starts_within_these_seconds_ask_the_database_once(hub, memberships) -> None:
    hub.user("ann", "course")
    hub.session.expire_all()
    asked: list[str] = []
    event.listen(
        hub.session.get_bind(), "before_cursor_execute", lambda *it: asked.append(str(it[2]))
    )

    memberships.names(hub.session, COURSE, "course")
    once = len(asked)
    for _ in range(10):
        memberships.names(hub.session, replace(COURSE), "course")

    assert len(asked) == once > 0


def test_one_question_reads_a_group_of_which_nobody_is_excepted(hub, memberships) -> None:
    """A user may be in hundreds of groups, and the hub does nothing else meanwhile."""
    hub.user("ann", "course")
    hub.user("bob", "course", "staff")
    hub.session.commit()
    asked: list[str] = []
    event.listen(
        hub.session.get_bind(), "before_cursor_execute", lambda *it: asked.append(str(it[2]))
    )

    names = memberships.names(hub.session, COURSE, "course")

    assert {"ann", "bob"} < names
    assert len([it for it in asked if "FROM" in it]) == 1


def test_two_policies_and_two_groups_are_kept_apart(hub, memberships) -> None:
    hub.user("ann", "course", "other")
    hub.user("bob", "course")
    without_bob = Policy("course", people(groups=("course",)), excepted=people(users=("bob",)))

    assert "bob" in memberships.names(hub.session, COURSE, "course")
    assert "bob" not in memberships.names(hub.session, without_bob, "course")
    both = Policy("both", people(groups=("*",)))
    assert "bob" in memberships.names(hub.session, both, "course")
    assert "bob" not in memberships.names(hub.session, both, "other")


def test_a_policy_that_has_changed_since_is_read_anew(hub, memberships) -> None:
    """A function may make policies anew for each start, and a new one replaces the older one."""
    hub.user("ann", "course")
    hub.user("bob", "course")
    assert "bob" in memberships.names(hub.session, COURSE, "course")

    without = replace(COURSE, excepted=people(users=["bob"]))

    assert "bob" not in memberships.names(hub.session, without, "course")
    assert "bob" in memberships.names(hub.session, replace(COURSE), "course")
    assert len(memberships._found) == 1


def test_of_ever_new_policies_only_the_last_are_kept(hub, memberships, monkeypatch) -> None:
    monkeypatch.setattr("gpuspawner.policy.memberships.MOST", 2)
    hub.user("ann", "course")

    for name in "abc":
        assert "ann" in memberships.names(hub.session, replace(COURSE, name=name), "course")

    assert [name for name, _ in memberships._found] == ["b", "c"]
