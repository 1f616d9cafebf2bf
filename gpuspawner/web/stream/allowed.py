"""What policies leave to the owner of an open form, read again only if it may have changed."""

from collections.abc import Hashable

import msgspec

from gpuspawner.start.policing import Entitlement, Policing

_MOST_KEPT = 4096


class Token(msgspec.Struct, eq=False):
    """Stands for equal policies of which equal parts are used; a policy's own hash takes long."""


_tokens: dict[Hashable, Token] = {}
NOTHING = Token()
"""For owners without policies."""


class Allowed:
    """What policies leave to one owner at each moment.

    Which policies apply is read by `renew`: they may depend on the time of day, on groups, or on an
    administrator's function. What counts toward their limits is read whenever servers have changed.
    """

    def __init__(self, policing: Policing, entitlement: Entitlement) -> None:
        self._policing = policing
        self._version: object = None
        self._token = NOTHING
        self.entitlement = entitlement

    @classmethod
    async def of(cls, policing: Policing) -> "Allowed":
        """Return what is left to the owner.

        Raises:
            Refusal: The administrator's function fails.
        """
        return cls(policing, await policing.entitlement())

    @property
    def may_change(self) -> bool:
        """Whether other policies may apply at another time."""
        return self._policing.has_policies

    async def renew(self) -> None:
        """Find out anew which policies apply.

        Raises:
            Refusal: As `of`.
        """
        if self.may_change:
            self.entitlement = await self._policing.entitlement()
            self._version = None

    def token(self) -> Token:
        """Return the same for owners to whom the same is left at this moment."""
        if not self.entitlement.is_limited:
            return NOTHING
        version = self.entitlement.version
        if version != self._version:
            self._version = version
            self.entitlement = self.entitlement.renewed()
            self._token = _token(self.entitlement.used)
        return self._token


def _token(used: Hashable) -> Token:
    if len(_tokens) > _MOST_KEPT:
        _tokens.clear()  # then some who could share an answer don't, until they are read again
    return _tokens.setdefault(used, Token())
