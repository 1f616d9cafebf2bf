"""The groups and roles of JupyterHub's own users, and the labels of KubeSpawner's own pods."""

from types import SimpleNamespace

import pytest
from jupyterhub.user import User

from gpuspawner.compat.people import Person, is_label_of, label_of, member_names, members, person
from gpuspawner.kube.servers import SERVER, USER
from tests.unit.compat.hub_database import HubDatabase
from tests.unit.spawn.hubs import StillHub

pytestmark = pytest.mark.each_python

NAMES = ["ann", "Ann", "ann@example.org", "a.b_c-d", "ann--x", "x" * 70, "ä", "1", "-", "ann smith"]


@pytest.fixture
def hub() -> HubDatabase:
    return HubDatabase()


def test_a_person_has_the_groups_and_roles_of_their_own_and_of_their_groups(hub) -> None:
    row = hub.user("ann", "course", "staff", own=["grader"])
    staff, other = hub.group("staff"), hub.group("other")
    staff.roles.append(hub.role("tutor"))
    other.roles.append(hub.role("none of hers"))
    hub.session.commit()

    assert person(row) == Person(
        "ann", "ann", frozenset({"course", "staff"}), frozenset({"user", "grader", "tutor"})
    )


def test_an_administrator_has_the_role_admin(hub) -> None:
    assert "admin" in person(hub.user("root", admin=True)).roles
    assert "admin" not in person(hub.user("ann")).roles


def test_the_hub_s_own_user_object_is_read_like_its_row(hub) -> None:
    row = hub.user("ann", "course")

    assert person(User(row, {}, db=hub.session)) == person(row)


def test_a_change_of_groups_is_read_at_once(hub) -> None:
    row = hub.user("ann", "course")
    assert person(row).groups == {"course"}

    row.groups = [hub.group("staff")]
    hub.session.commit()

    assert person(row).groups == {"staff"}
    assert [it.name for it in members(hub.session, "staff")] == ["ann"]
    assert not list(members(hub.session, "course"))


def test_the_members_of_a_group_are_read_with_their_other_groups(hub) -> None:
    hub.user("ann", "course")
    hub.user("bob", "course", "staff")
    hub.user("cleo", "staff")

    found = {it.name: it.groups for it in members(hub.session, "course")}

    assert found == {"ann": {"course"}, "bob": {"course", "staff"}}


def test_the_members_of_a_group_are_read_as_each_of_them_alone(hub) -> None:
    rows = [hub.user("ann", "course", "staff", own=["grader"]), hub.user("bob", "course")]
    rows.append(hub.user("root", "course", admin=True))
    staff, course, other = (hub.group(name) for name in ("staff", "course", "other"))
    staff.roles.append(hub.role("tutor"))
    course.roles.extend([hub.role("student"), hub.role("grader")])
    other.roles.append(hub.role("none of theirs"))
    hub.session.commit()

    found = sorted(members(hub.session, "course"), key=lambda it: it.name)

    assert found == [person(row) for row in rows]


def test_the_names_of_the_members_are_those_of_the_members(hub) -> None:
    hub.user("ann", "course", "staff")
    hub.user("bob", "course")
    hub.user("cleo", "staff")

    for group in ("course", "staff"):
        named = {it.name for it in members(hub.session, group)}
        assert set(member_names(hub.session, group)) == named


def test_a_group_that_does_not_exist_has_no_members(hub) -> None:
    assert not list(members(hub.session, "nobody"))
    assert not list(member_names(hub.session, "nobody"))


@pytest.mark.parametrize("name", NAMES)
async def test_the_label_is_the_one_that_kubespawner_writes(name, monkeypatch) -> None:
    spawner = StillHub(monkeypatch).stock_spawner()
    spawner.user.name = name
    spawner.orm_spawner = SimpleNamespace(name=name, server=None)
    pod = await spawner.get_pod_manifest()

    assert label_of(name) == pod.metadata.labels[USER] == pod.metadata.labels[SERVER]
    assert pod.metadata.annotations[USER] == pod.metadata.annotations[SERVER] == name
    assert is_label_of(pod.metadata.labels[SERVER], name)


async def test_a_default_server_s_label_is_empty(monkeypatch) -> None:
    pod = await StillHub(monkeypatch).stock_spawner().get_pod_manifest()

    assert pod.metadata.labels[SERVER] == label_of("") == ""
    assert SERVER not in pod.metadata.annotations
    assert is_label_of("", "")


def test_no_two_names_have_one_label() -> None:
    assert len({label_of(name) for name in NAMES}) == len(NAMES)
    assert not any(is_label_of(label_of(a), b) for a in NAMES for b in NAMES if a != b)
