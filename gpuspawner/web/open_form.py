"""An open form of accelerators or of profiles: what it shows, and which forms show the same.

What policies leave to its owner is read again only if it may have changed.
"""

from collections.abc import Hashable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import msgpack, structs

from gpuspawner import language
from gpuspawner.gates.accelerators import Accelerators
from gpuspawner.gates.sources import Sources
from gpuspawner.kube.caches import UntilChanged
from gpuspawner.kube.kueue import queue_of
from gpuspawner.kube.objects import Manifest, convert
from gpuspawner.kube.pods import Pod, Volume
from gpuspawner.offers.offers import Offers
from gpuspawner.preflight.availability import what_decides
from gpuspawner.preflight.downloads import containers
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.scheduling.verdicts import Subject
from gpuspawner.start.policing import Entitlement, Policing
from gpuspawner.web.answers import JSON, states_of

if TYPE_CHECKING:
    from gpuspawner.profiles.profile_list import Listed
    from gpuspawner.profiles.profiles import Profiles

_MOST_KEPT = 4096


class Token(msgspec.Struct, eq=False):
    """Stands for equal policies of which equal parts are used; a policy's own hash takes long."""


_tokens: dict[Hashable, Token] = {}
NOTHING = Token()
"""For owners without policies."""


def _token_of(used: Hashable) -> Token:
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
    match await sources.offered():
        case Accelerators() as accelerators:
            source = accelerators.of(server)
            stock = await source.stock_pod()
            return AcceleratorsForm(source, stock, await source.policing.entitlement())
        case None:
            return None
        case profiles:
            return await ProfilesForm.opened(profiles.of(server))


class _OfAnOwner:
    """What policies leave to the owner of a form, and the language in which it was opened.

    Which policies apply is read by `renew`: they may depend on the time of day, on groups, or on an
    administrator's function. What counts toward their limits is read whenever servers have changed.
    """

    def __init__(self, policing: Policing, entitlement: Entitlement) -> None:
        self._policing = policing
        self._entitlement = entitlement
        self._version: object = None
        self._left = NOTHING
        self._language = language.language_tag()

    @property
    def may_change(self) -> bool:
        return self._policing.has_policies

    async def renew(self) -> None:
        if self._policing.has_policies:
            self._entitlement = await self._policing.entitlement()
            self._version = None

    def _token(self) -> Token:
        """Return the same for owners to whom the same is left at this moment."""
        if not self._entitlement.is_limited:
            return NOTHING
        version = self._entitlement.version
        if version != self._version:
            self._version = version
            self._entitlement = self._entitlement.renewed()
            self._left = _token_of(self._entitlement.used)
        return self._left


class AcceleratorsForm(_OfAnOwner):
    """As `OpenForm`. KubeSpawner's pod for the owner is made once: its configuration is fixed."""

    def __init__(
        self, source: Accelerators, stock: Manifest | None, entitlement: Entitlement
    ) -> None:
        super().__init__(source.policing, entitlement)
        self._source = source
        self._stock = what_decides(stock) if stock else None
        self._pod = convert("Pod", self._stock) if self._stock else None
        self._likeness: object = self._like(source.runtime.offers)

    def question(self) -> Hashable:
        """As `OpenForm.question`."""
        return self._language, self._likeness, self._labels(), self._token()

    async def answer(self) -> Shown:
        """As `OpenForm.answer`."""
        language.set_locale(self._language)
        return Shown(states_of(self._source, self._entitlement, self._stock))

    def _like(self, offers: Offers) -> object:
        """Return what decides of the pod, but for labels; the same for users with pods alike.

        Claims don't count: the form leaves them out.
        """
        if self._stock is None:
            return None
        if not isinstance(self._pod, Pod):
            return self  # like no other
        volumes = [it for it in self._pod.spec.volumes or () if it != Volume(it.name)]
        spec = structs.replace(self._pod.spec, volumes=volumes)
        images = [(it.get("image"), it.get("imagePullPolicy")) for it in containers(self._stock)]
        later = self._source.later
        queue, met = queue_of(self._pod), _met(self._stock, offers)
        # The hub's own code may add rules about the other pods of the namespace.
        namespace = self._pod.metadata.namespace if later.has_own_code or queue else ""
        return msgpack.encode((namespace, queue, spec, images, met, later.server))

    def _labels(self) -> Hashable:
        """Return the pod's labels if they count at this moment, with which it is like no other.

        If they don't, the namespace of KubeSpawner's pod, which each user may have, doesn't count
        either.
        """
        verdicts = self._source.runtime.preflight.verdicts
        is_alone = isinstance(self._pod, Pod) and verdicts.depends_on_labels(self._pod)
        return self if is_alone else None


def _met(stock: Mapping[str, Any], offers: Offers) -> list[Any]:
    """Return the pod's volumes and mounts that accelerators have too: together they may clash."""
    accelerators = offers.accelerators.values()
    volumes: list[Any] = [it for one in accelerators for it in one.volumes]
    mounts: list[Any] = [it for one in accelerators for it in one.volume_mounts]
    names, paths = {it["name"] for it in (*volumes, *mounts)}, {it["mountPath"] for it in mounts}
    spec = stock["spec"]
    mounted = spec["containers"][0].get("volumeMounts") or ()
    return [
        [it for it in spec.get("volumes") or () if it["name"] in names],
        [it for it in mounted if it["mountPath"] in paths],
    ]


class ProfilesForm(_OfAnOwner):
    """As `OpenForm`.

    Two users' profiles show the same if their pods are made of the same settings, those of their
    default profiles differ only in what is named after them, their volumes can be reached from the
    same places, and no code of the hub's own may treat them differently.
    """

    def __init__(self, source: "Profiles", entitlement: Entitlement, listed: "Listed") -> None:
        super().__init__(source.policing, entitlement)
        self._source = source
        self._listed = listed
        self._base: Proposal | None = None
        self._settings: bytes | None = None
        self._spec = b""
        self._server = source.later.server  # what is known of the hub's own code may be of it alone
        self._places = UntilChanged[bytes]()

    @classmethod
    async def opened(cls, source: "Profiles") -> "ProfilesForm":
        """Open the form.

        Raises:
            HTTPError, Refusal: The profiles can't be read, or a function of policies fails.
        """
        form = cls(source, await source.policing.entitlement(), await source.listed())
        await form._sample()
        return form

    @property
    def may_change(self) -> bool:
        """As `OpenForm.may_change`."""
        return super().may_change or self._source.are_computed

    async def renew(self) -> None:
        """As `OpenForm.renew`."""
        await super().renew()
        listed = await self._source.listed()
        if listed is not self._listed:
            self._listed = listed
            await self._sample()

    def question(self) -> Hashable:
        """As `OpenForm.question`."""
        base = self._base
        if base is None or not isinstance(base.subject, Subject) or self._is_alone(base.subject):
            return self
        runtime = self._source.runtime
        find = partial(runtime.preflight.verdicts.places, base.subject)
        places = self._places.of(runtime.view.state.lasting_version, (), find)
        alike = self._settings, self._spec, places, base.queue, self._server
        return self._language, self._listed, alike, self._token()

    async def answer(self) -> Shown:
        """As `OpenForm.answer`."""
        language.set_locale(self._language)
        looking = self._source.look_at(self._listed, self._entitlement)
        found: JSON = {"profiles": await self._source.states_of(looking)}
        # A start may have loaded a profile into the spawner since the question.
        is_asked = await looking.base() == self._base and looking.settings == self._settings
        return Shown(found, looking.holds_for_others and is_asked)

    async def _sample(self) -> None:
        """Find out what the owner's pod of the default profile has of its own."""
        looking = self._source.look_at(self._listed, self._entitlement)
        self._base, self._settings = await looking.base(), looking.settings
        self._places = UntilChanged[bytes]()
        self._spec = _unnamed(self._base) if self._base else b""

    def _is_alone(self, subject: Subject) -> bool:
        """Whether the pod's name or labels count at this moment: an older pod may be there."""
        runtime, metadata = self._source.runtime, subject.pod.metadata
        is_there = f"{metadata.namespace}/{metadata.name}" in runtime.view.state.pods
        return is_there or runtime.preflight.verdicts.depends_on_labels(subject.pod)


def _unnamed(base: Proposal) -> bytes:
    """Return what the scheduler reads of a sample, without the names of its owner's volumes.

    `Verdicts.places` says what these are, in the same order.
    """
    volumes = base.pod["spec"].get("volumes") or ()
    shared = [None if "persistentVolumeClaim" in it else it for it in volumes]
    return msgpack.encode((base.namespace, {**base.pod["spec"], "volumes": shared}))
