"""A request that stays open is let in for as long as a new one would be."""

from typing import Any

import pytest
from jupyterhub import orm
from sqlalchemy.exc import SQLAlchemyError

from gpuspawner.compat.rights import Rights
from tests.unit.makers.hub_database import HubDatabase

pytestmark = pytest.mark.each_python

COOKIE = "jupyterhub-hub-login"


class Handler:
    """A handler of the hub's that has let somebody in, by a token or by a cookie."""

    cookie_max_age_days = 14.0

    def __init__(self, database: HubDatabase, user: Any, *, token: Any = None) -> None:
        self.db = database.session
        self.hub = type("Hub", (), {"cookie_name": COOKIE})
        self.current_user = user
        self.cookie: str | None = None if token else user.cookie_id
        self._token = token
        self._rights: dict[str, Rights] = {}

    def get_token(self) -> Any:
        return self._token

    def get_secure_cookie(self, name: str, *, max_age_days: float) -> bytes | None:
        assert (name, max_age_days) == (COOKIE, 14.0)
        return self.cookie.encode() if self.cookie else None

    def may_follow(self, user: str) -> bool:
        """Whether it may have a form's stream, which it opens at the first call."""
        if user not in self._rights:
            self._rights[user] = Rights(self, "servers", user, "")
        return self._rights[user].hold()


@pytest.fixture
def database(database) -> HubDatabase:
    database.session.add(orm.OAuthClient(identifier="jupyterhub"))  # of users' own tokens
    database.session.commit()
    return database


@pytest.fixture
def ann(database) -> Any:
    return database.user("ann")


def by_cookie(database: HubDatabase, user: Any) -> Handler:
    return Handler(database, user)


def by_token(database: HubDatabase, user: Any, **more: Any) -> Handler:
    token = orm.APIToken.find(database.session, user.new_api_token(**more))
    return Handler(database, user, token=token)


def test_a_user_may_follow_her_own_form_and_no_other(database, ann) -> None:
    database.user("bob")
    for request in (by_cookie(database, ann), by_token(database, ann)):
        assert request.may_follow("ann")
        assert not request.may_follow("bob")


def test_a_revoked_token_is_over(database, ann) -> None:
    request = by_token(database, ann)
    assert request.may_follow("ann")

    database.session.delete(ann.api_tokens[0])
    database.session.commit()

    assert not request.may_follow("ann")


def test_a_token_has_only_its_own_scopes(database, ann) -> None:
    assert not by_token(database, ann, scopes=["read:users!user"]).may_follow("ann")
    assert by_token(database, ann, scopes=["servers!user"]).may_follow("ann")


def test_a_cookie_that_has_expired_is_over(database, ann) -> None:
    request = by_cookie(database, ann)
    assert request.may_follow("ann")

    request.cookie = None  # so the hub's handlers say it

    assert not request.may_follow("ann")


@pytest.mark.usefixtures("ann")
def test_a_role_that_was_taken_away_is_gone(database) -> None:
    boss = database.user("boss", admin=True)
    request = by_cookie(database, boss)
    assert request.may_follow("ann")

    boss.roles.remove(database.role("admin"))
    database.session.commit()

    assert not request.may_follow("ann")
    assert request.may_follow("boss")


@pytest.mark.usefixtures("ann")
def test_a_role_is_gone_with_its_group(database) -> None:
    teacher = database.user("teacher", "teachers")
    database.group("teachers").roles.append(database.role("admin"))
    database.session.commit()
    requests = by_cookie(database, teacher), by_token(database, teacher)
    assert all(request.may_follow("ann") for request in requests)

    teacher.groups.clear()
    database.session.commit()

    assert not any(request.may_follow("ann") for request in requests)


def test_a_user_who_was_deleted_may_not_and_nobody_may_follow_her_form(database, ann) -> None:
    own = by_cookie(database, ann), by_token(database, ann)
    boss = by_cookie(database, database.user("boss", admin=True))
    assert all(request.may_follow("ann") for request in (*own, boss))

    database.session.delete(ann)
    database.session.commit()

    assert not any(request.may_follow("ann") for request in (*own, boss))


def test_it_is_no_activity_and_changes_nothing(database, ann) -> None:
    requests = by_cookie(database, ann), by_token(database, ann)
    before = ann.last_activity, ann.api_tokens[0].last_activity

    assert all(request.may_follow("ann") for request in requests)

    assert (ann.last_activity, ann.api_tokens[0].last_activity) == before
    assert not database.session.dirty


def test_after_an_error_the_hubs_requests_can_use_the_session(database, ann) -> None:
    request = by_cookie(database, ann)
    database.session.add(orm.User(name="ann"))  # a second one: the flush before a query fails

    with pytest.raises(SQLAlchemyError):
        request.may_follow("ann")

    assert request.may_follow("ann")
