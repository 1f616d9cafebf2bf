"""Whether the caller of a request that stays open may still have its answer.

The hub itself checks this at the beginning of a request. Read in ``jupyterhub/handlers/base.py``
(``get_current_user``, ``_resolve_roles_and_scopes``) and ``scopes.py`` (``needs_scope``) of 5.4.0,
5.5.0 and 6.1.1, which do the same here.
"""

from typing import Any

from jupyterhub import orm
from jupyterhub.scopes import get_scopes_for, has_scope
from sqlalchemy import bindparam, select
from sqlalchemy.exc import SQLAlchemyError

_BY_NAME, _BY_COOKIE, _BY_TOKEN = (
    select(column).where(column == bindparam("value"))
    for column in (orm.User.name, orm.User.cookie_id, orm.APIToken.hashed)
)


class Rights:
    """The rights of a request's caller to a server, whose own one it needn't be.

    The request itself is let in already. Unlike another one, a check is no activity of the
    caller's, asks no authenticator, and sets no cookie. It leaves out when a token expires.
    """

    def __init__(self, handler: Any, scope: str, user: str, server: str) -> None:
        self._handler = handler
        self._owner = user
        self._scope = f"{scope}!server={user}/{server}"
        token = handler.get_token()
        self._hashed = token.hashed if token is not None else None
        self._caller = token or handler.current_user

    def hold(self) -> bool:
        """Ask the database anew. It reads no whole rows, which would take ten times as long.

        Raises:
            SQLAlchemyError: The database doesn't answer.
        """
        try:
            if not self._are_there():
                return False
            # The hub changes roles and groups through the same session, which so knows them.
            scopes = get_scopes_for(self._caller)
            allowed: bool = has_scope(self._scope, scopes, db=self._handler.db)
        except SQLAlchemyError:
            self._handler.db.rollback()  # all requests share the session; the hub does so too
            raise
        return allowed

    def _are_there(self) -> bool:
        """Whether the server's owner exists, and the caller by the same token or cookie."""
        if not self._has(_BY_NAME, self._owner):
            return False
        if self._hashed is not None:
            return self._has(_BY_TOKEN, self._hashed)
        cookie = self._cookie()
        return cookie is not None and self._has(_BY_COOKIE, cookie)

    def _cookie(self) -> str | None:
        """Return whom the cookie names, unless it has expired."""
        handler = self._handler
        name, days = handler.hub.cookie_name, handler.cookie_max_age_days
        cookie: bytes | None = handler.get_secure_cookie(name, max_age_days=days)
        return cookie.decode("utf-8", "replace") if cookie is not None else None

    def _has(self, statement: Any, value: str) -> bool:
        return self._handler.db.scalar(statement, {"value": value}) is not None
