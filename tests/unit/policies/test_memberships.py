"""The members of groups, from a real database of JupyterHub, are at most some seconds old."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from jupyterhub import orm
from msgspec.structs import replace
from sqlalchemy import event

from gpuspawner.policies.accounts import KEPT_SECONDS, Memberships
from gpuspawner.policies.policies import Policy
from tests.unit.makers.clocks import Clock
from tests.unit.makers.hub_database import HubDatabase
from tests.unit.makers.policy_worlds import people

COURSE = Policy("course", people(groups=("course",)))
Names = Callable[..., list[str]]


@pytest.fixture
def hub() -> HubDatabase:
    """A hub with two users, who both are in the course."""
    hub = HubDatabase()
    hub.user("ann", "course")
    hub.user("bob", "course", "staff")
    return hub


@pytest.fixture
def memberships(clock: Clock) -> Memberships:  # noqa: ARG001, it sets the clock first
    return Memberships()


@pytest.fixture
def names(hub: HubDatabase, memberships: Memberships) -> Names:
    """Returns the names of the people in a group to whom a policy applies."""

    def of(policy: Policy = COURSE, group: str = "course") -> list[str]:
        ids = memberships.ids(hub.session, policy, group)
        return sorted(hub.session.get(orm.User, it).name for it in ids)

    return of


def test_a_renamed_member_is_the_same(hub, memberships) -> None:
    hub.user("cleo", "staff")
    before = memberships.ids(hub.session, COURSE, "course")

    orm.User.find(hub.session, "bob").name = "robert"
    hub.session.commit()

    assert Memberships().ids(hub.session, COURSE, "course") == before
    assert len(before) == 2


def test_members_for_whom_the_policy_is_not_do_not_count(hub, names) -> None:
    hub.user("root", "course", admin=True)
    excepted = people(groups=("staff",), roles=("admin",))

    assert names(Policy("course", people(groups=("course",)), excepted)) == ["ann"]


def test_a_policy_for_users_of_a_group_counts_all_members_that_it_names(names) -> None:
    assert names(Policy("p", people(users=("ann",)))) == ["ann"]


@pytest.mark.parametrize("group", ["nobody", "", "cour*"])
def test_a_group_that_does_not_exist_has_no_members(group, names) -> None:
    assert names(group=group) == []


def test_members_are_read_again_after_some_seconds(hub, names, clock) -> None:
    """Until then, many starts ask the database once; a function makes policies anew for each."""
    names()
    hub.user("cleo", "course")

    clock.now += KEPT_SECONDS - 0.1
    assert "cleo" not in names(replace(COURSE))
    clock.now += 0.1

    assert "cleo" in names()


def test_one_question_reads_a_group_of_which_nobody_is_excepted(hub, memberships) -> None:
    """A user may be in hundreds of groups, and the hub does nothing else meanwhile."""
    hub.session.commit()
    asked: list[str] = []

    @event.listens_for(hub.session.get_bind(), "before_cursor_execute")
    def note(*it: object) -> None:
        asked.append(str(it[2]))

    assert len(memberships.ids(hub.session, COURSE, "course")) == 2
    assert len([it for it in asked if "FROM" in it]) == 1


def test_two_policies_and_two_groups_are_kept_apart(hub, names) -> None:
    hub.user("cleo", "course", "other")
    without_bob = Policy("course", people(groups=("course",)), excepted=people(users=("bob",)))

    assert "bob" in names()
    assert "bob" not in names(without_bob)
    both = Policy("both", people(groups=("*",)))
    assert "bob" in names(both)
    assert "bob" not in names(both, "other")


def test_a_policy_that_has_changed_since_is_read_anew(names) -> None:
    """A function may make policies anew for each start."""
    assert "bob" in names()

    assert "bob" not in names(replace(COURSE, excepted=people(users=["bob"])))
    assert "bob" in names(replace(COURSE))


def test_of_ever_new_policies_only_the_last_are_kept(hub, monkeypatch) -> None:
    monkeypatch.setattr("gpuspawner.policies.accounts.MOST", 2)
    memberships = Memberships()
    for name in "abc":
        assert memberships.ids(hub.session, replace(COURSE, name=name), "course")

    assert [name for name, _ in memberships._found._kept] == ["b", "c"]
