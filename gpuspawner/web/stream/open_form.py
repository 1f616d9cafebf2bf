"""What one open form shows, which forms show the same, and what policies leave to its owner."""

from collections.abc import Hashable
from typing import Protocol

import msgspec

from gpuspawner.gates.sources import Sources
from gpuspawner.start.policing import Entitlement, Policing
from gpuspawner.web.answers import JSON

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


class Shown(msgspec.Struct, frozen=True):
    """What a form shows.

    Attributes:
        for_all: Whether it holds for each form with an equal question, and not for this one alone.
    """

    found: JSON
    for_all: bool = True


class OpenForm(Protocol):
    """An open form."""

    @property
    def may_change(self) -> bool:
        """Whether `renew` may find something else."""

    async def renew(self) -> None:
        """Read anew what nobody tells the hub about, such as an administrator's function.

        Raises:
            HTTPError, Refusal: It can't be read.
        """

    def question(self) -> Hashable:
        """Return the same as other forms that show the same at this moment. Takes microseconds."""

    async def answer(self) -> Shown:
        """Answer the last `question`, in the language of the user.

        Raises:
            HTTPError, Refusal: As `renew`.
        """


async def opened(sources: Sources, server: str) -> OpenForm | None:
    """Return the form of a server, in the current language; None without choices.

    Raises:
        HTTPError, Refusal: As `OpenForm.renew`.
    """
    from gpuspawner.gates.accelerators import Accelerators
    from gpuspawner.profiles.profiles import Profiles
    from gpuspawner.web.stream.accelerators_form import AcceleratorsForm
    from gpuspawner.web.stream.profiles_form import ProfilesForm

    match await sources.offered():
        case Accelerators() as accelerators:
            return await AcceleratorsForm.opened(accelerators.of(server))
        case Profiles() as profiles:
            return await ProfilesForm.opened(profiles.of(server))
    return None
