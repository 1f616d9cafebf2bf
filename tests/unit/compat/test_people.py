"""The groups and roles of JupyterHub's own users, and the labels of KubeSpawner's own pods."""

from types import SimpleNamespace

import pytest
from jupyterhub.user import User

from gpuspawner.compat.people import Person, group_roles, label_of, member_ids, members, person
from gpuspawner.kube.servers import SERVER, USER
from tests.unit.makers.hubs import StillHub

pytestmark = pytest.mark.each_python

NAMES = ["ann", "Ann", "ann@example.org", "a.b_c-d", "ann--x", "x" * 70, "ä", "1", "-", "ann smith"]


def test_a_person_has_the_groups_and_roles_of_their_own_and_of_their_groups(database) -> None:
    row = database.user("ann", "course", "staff", own=["grader"])
    staff, other = database.group("staff"), database.group("other")
    staff.roles.append(database.role("tutor"))
    other.roles.append(database.role("none of hers"))
    database.session.commit()

    roles = frozenset({"user", "grader", "tutor"})
    expected = Person(row.id, "ann", "ann", frozenset({"course", "staff"}), roles)
    # The hub's own object is read like its row.
    assert person(row) == person(User(row, {}, db=database.session)) == expected


def test_an_administrator_has_the_role_admin(database) -> None:
    assert "admin" in person(database.user("root", admin=True)).roles
    assert "admin" not in person(database.user("ann")).roles


def test_a_change_of_groups_is_read_at_once(database) -> None:
    row = database.user("ann", "course")
    assert person(row).groups == {"course"}

    row.groups = [database.group("staff")]
    database.session.commit()

    assert person(row).groups == {"staff"}
    assert [it.name for it in members(database.session, "staff")] == ["ann"]
    assert not list(members(database.session, "course"))


def test_the_members_of_a_group_are_read_as_each_of_them_alone(database) -> None:
    rows = [database.user("ann", "course", "staff", own=["grader"]), database.user("bob", "course")]
    rows.append(database.user("root", "course", admin=True))
    database.user("cleo", "staff")
    staff, course, other = (database.group(name) for name in ("staff", "course", "other"))
    staff.roles.append(database.role("tutor"))
    course.roles.extend([database.role("student"), database.role("grader")])
    other.roles.append(database.role("none of theirs"))
    database.session.commit()

    found = sorted(members(database.session, "course"), key=lambda it: it.name)

    assert found == [person(row) for row in rows]
    assert set(member_ids(database.session, "course")) == {row.id for row in rows}
    assert [it.groups for it in found] == [{"course", "staff"}, {"course"}, {"course"}]


def test_the_roles_of_a_group_are_those_that_its_members_have_by_it(database) -> None:
    row = database.user("ann", "course", "staff")
    database.group("staff").roles.append(database.role("tutor"))
    database.session.commit()

    assert group_roles(database.session, "staff") == {"tutor"} <= person(row).roles
    assert group_roles(database.session, "course") == frozenset()
    assert group_roles(database.session, "nobody") is None


def test_a_group_that_does_not_exist_has_no_members(database) -> None:
    assert not list(members(database.session, "nobody"))
    assert not list(member_ids(database.session, "nobody"))


@pytest.mark.parametrize("name", NAMES)
async def test_the_label_is_the_one_that_kubespawner_writes(name, monkeypatch) -> None:
    spawner = StillHub(monkeypatch).stock_spawner()
    spawner.user.name = name
    spawner.orm_spawner = SimpleNamespace(name=name, server=None)
    pod = await spawner.get_pod_manifest()

    assert label_of(name) == pod.metadata.labels[USER] == pod.metadata.labels[SERVER]
    assert pod.metadata.annotations[USER] == pod.metadata.annotations[SERVER] == name


async def test_a_default_server_s_label_is_empty(monkeypatch) -> None:
    pod = await StillHub(monkeypatch).stock_spawner().get_pod_manifest()

    assert pod.metadata.labels[SERVER] == label_of("") == ""
    assert SERVER not in pod.metadata.annotations


def test_no_two_names_have_one_label() -> None:
    assert len({label_of(name) for name in NAMES}) == len(NAMES)
