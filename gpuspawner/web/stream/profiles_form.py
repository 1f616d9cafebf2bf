"""An open form of KubeSpawner's profiles."""

from collections.abc import Hashable
from functools import partial

from msgspec import msgpack

from gpuspawner import language
from gpuspawner.kube.caches import UntilChanged
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.profiles.profile_list import Listed
from gpuspawner.profiles.profiles import Profiles
from gpuspawner.scheduling.verdicts import Subject
from gpuspawner.web.answers import JSON
from gpuspawner.web.stream.open_form import Allowed, Shown


class ProfilesForm:
    """As `OpenForm`.

    Two users' profiles show the same if their pods are made of the same settings, those of their
    default profiles differ only in what is named after them, and their volumes can be reached from
    the same places.
    """

    def __init__(self, source: Profiles, allowed: Allowed, listed: Listed) -> None:
        self._source = source
        self._allowed = allowed
        self._listed = listed
        self._language = language.language_tag()
        self._base: Proposal | None = None
        self._settings: bytes | None = None
        self._spec = b""
        self._places = UntilChanged[bytes]()

    @classmethod
    async def opened(cls, source: Profiles) -> "ProfilesForm":
        """Open the form.

        Raises:
            HTTPError, Refusal: The profiles can't be read, or a function of policies fails.
        """
        form = cls(source, await Allowed.of(source.policing), await source.listed())
        await form._sample()
        return form

    @property
    def may_change(self) -> bool:
        """As `OpenForm.may_change`."""
        return self._allowed.may_change or self._source.are_computed

    async def renew(self) -> None:
        """As `OpenForm.renew`."""
        await self._allowed.renew()
        listed = await self._source.listed()
        if listed is not self._listed:
            self._listed = listed
            await self._sample()

    def question(self) -> Hashable:
        """As `OpenForm.question`."""
        base = self._base
        if base is None or not isinstance(base.subject, Subject) or self._is_alone(base.subject):
            return self
        alike = self._settings, self._spec, self._from(base.subject), base.queue
        return self._language, self._listed, alike, self._allowed.token()

    async def answer(self) -> Shown:
        """As `OpenForm.answer`."""
        language.set_locale(self._language)
        looking = self._source.look_at(self._listed, self._allowed.entitlement)
        found: JSON = {"profiles": await self._source.states_of(self._listed, looking)}
        # A start may have loaded a profile into the spawner since the question.
        is_asked = await looking.base() == self._base and looking.settings == self._settings
        return Shown(found, looking.holds_for_others and is_asked)

    async def _sample(self) -> None:
        """Find out what the owner's pod of the default profile has of its own."""
        looking = self._source.look_at(self._listed, self._allowed.entitlement)
        self._base, self._settings = await looking.base(), looking.settings
        self._places = UntilChanged[bytes]()
        self._spec = _unnamed(self._base) if self._base else b""

    def _is_alone(self, subject: Subject) -> bool:
        """Whether the pod's name or labels count at this moment: an older pod may be there."""
        runtime, metadata = self._source.runtime, subject.pod.metadata
        is_there = f"{metadata.namespace}/{metadata.name}" in runtime.view.state.pods
        return is_there or runtime.preflight.verdicts.depends_on_labels(subject.pod)

    def _from(self, subject: Subject) -> bytes:
        runtime = self._source.runtime
        find = partial(runtime.preflight.verdicts.places, subject)
        return self._places.of(runtime.view.state.lasting_version, (), find)


def _unnamed(base: Proposal) -> bytes:
    """Return what the scheduler reads of a sample, without the names of its owner's volumes.

    `Verdicts.places` says what these are, in the same order.
    """
    volumes = base.pod["spec"].get("volumes") or ()
    shared = [None if "persistentVolumeClaim" in it else it for it in volumes]
    return msgpack.encode((base.namespace, {**base.pod["spec"], "volumes": shared}))
