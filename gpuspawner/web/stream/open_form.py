"""What one open form shows, and which forms show the same."""

from collections.abc import Hashable
from typing import Protocol

import msgspec

from gpuspawner.gates.sources import Sources
from gpuspawner.web.answers import JSON


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
