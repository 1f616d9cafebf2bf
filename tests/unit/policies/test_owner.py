"""Whom a policy judges: users, groups and roles by patterns, as in a shell."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.policies.owner import NO_NAMES, NOBODY, Names, Owner
from tests.unit.makers.policy_worlds import people

ANN = Owner("ann", frozenset({"ml-2026", "staff"}), frozenset({"user", "admin"}), "train")


@pytest.mark.parametrize(
    ("pattern", "name", "is_match"),
    [
        ("ann", "ann", True),
        ("ann", "anna", False),
        ("Ann", "ann", False),
        ("ann*", "anna", True),
        ("*", "anything/at all", True),
        ("", "", True),
        ("", "ann", False),
        ("exp-?", "exp-10", False),
        ("exp-[0-9]", "exp-7", True),
        ("exp-[!0-9]", "exp-7", False),
        ("a.n", "ann", False),
        ("ann|bob", "bob", False),
        ("[", "[", True),
        ("ml[2026]", "ml[2026]", True),
        ("ml[2026]", "ml2", True),
        ("ann", "ann\n", False),
        ("*@example.org", "ann@example.org.evil", False),
    ],
)
def test_a_pattern_matches_the_whole_name_in_its_own_case(pattern, name, is_match) -> None:
    names = Names.of([pattern])

    assert (name in names) is is_match
    assert names.among(frozenset({name})) == ({name} if is_match else set())


listed = st.lists(st.text("ab*?[]!", max_size=4), max_size=6)
given_names = st.frozensets(st.text("ab", max_size=4), max_size=6)


@given(listed, given_names)
def test_one_of_several_patterns_is_enough(written, names) -> None:
    found = Names.of(written)
    matching = {
        name for name in names if name in written or any(fnmatchcase(name, it) for it in written)
    }

    assert {name for name in names if name in found} == matching
    assert found.among(names) == matching
    assert bool(found) is bool(written)


@pytest.mark.parametrize(
    ("some", "is_among_them"),
    [
        (people(users=("ann",)), True),
        (people(users=("bob",)), False),
        (people(groups=("ml-*",)), True),
        (people(groups=("ml",)), False),
        (people(roles=("admin",)), True),
        (people(roles=("grader",)), False),
        (people(users=("bob",), groups=("staff",)), True),
        (people(users=("bob",), roles=("us?r",)), True),
        (people(users=("bob",), groups=("other",), roles=("grader",)), False),
        # A name of one kind is none of another kind.
        (people(users=("staff", "admin", "train")), False),
        (people(groups=("ann", "admin"), roles=("ann", "staff")), False),
    ],
)
def test_who_matches_one_of_the_patterns_is_among_the_people(some, is_among_them) -> None:
    assert some.include(ANN) is is_among_them


def test_nobody_in_particular_is_nobody() -> None:
    assert not NOBODY
    assert not NO_NAMES
    assert not NOBODY.include(ANN)


@pytest.mark.parametrize("kind", ["users", "groups", "roles"])
def test_people_are_somebody_as_soon_as_one_pattern_is_written(kind) -> None:
    assert people(**{kind: ("nobody",)})


def test_someone_without_groups_and_roles_is_in_none_of_them() -> None:
    assert not people(groups=("*",), roles=("*",)).include(Owner("ann"))
