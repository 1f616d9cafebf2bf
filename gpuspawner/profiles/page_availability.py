"""Find out for one page what its profiles would get, without waiting long."""

import dataclasses
import logging
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from weakref import WeakKeyDictionary

import msgspec
from tornado import web

from gpuspawner.cluster.background import Turn
from gpuspawner.cluster.health import Live
from gpuspawner.compat import kubespawner
from gpuspawner.compat.class_traits import renewing
from gpuspawner.compat.likeness import likeness
from gpuspawner.kube.caches import KeptFor, UntilChanged
from gpuspawner.kube.objects import Manifest
from gpuspawner.preflight.availability import Availability
from gpuspawner.preflight.decision import Decision, Refuse, Start, UnknownRules, Wait
from gpuspawner.preflight.downloads import on_all, settled_images
from gpuspawner.preflight.dry_runs import Admission, TooManyDryRunsError
from gpuspawner.preflight.learned_hooks import Later, placement_of
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.preflight.rejection import Rejection
from gpuspawner.profiles.pod_of_choice import try_out, unknown
from gpuspawner.profiles.profile_availability import (
    ChoicePlace,
    ProfileAvailability,
    availability,
    fits_now,
)
from gpuspawner.profiles.profile_list import Listed, ListedChoice, Lists, Profile, ProfileOption
from gpuspawner.profiles.profile_options import Chosen, of_profile
from gpuspawner.profiles.sharing import ChoiceKey, Pattern, Patterns, Rows, Samples, sample
from gpuspawner.runtime import Runtime
from gpuspawner.scheduling.evaluate import fitting_nodes
from gpuspawner.scheduling.verdicts import PodShape, Subject
from gpuspawner.start import hooks
from gpuspawner.start.host import Host
from gpuspawner.start.policing import Entitlement

# The forms that were drawn last, because KubeSpawner compiles its template for each.

_MOST_FORMS = 32
"""Forms; pages differ by what their users chose last. One may have 100 kB."""


class Drawn:
    """The last forms, and what each shows. One for the whole hub."""

    def __init__(self) -> None:
        self._kept: deque[tuple[object, str]] = deque(maxlen=_MOST_FORMS)

    def form(self, shows: object, draw: Callable[[], str]) -> str:
        """Return the form that shows exactly this; draw it if none is kept."""
        for place, (kept, drawn) in enumerate(self._kept):
            if kept == shows:
                self._kept[place] = shows, drawn  # the next comparison finds the same objects
                return drawn
        drawn = draw()
        self._kept.appendleft((shows, drawn))
        return drawn


_SECONDS, _MOST_KEPT = 300.0, 4096
"""How long pages use what admission did to a pod, and for how many pods."""

_MOST_ROWS = 256
"""Owners who differ, and lists."""

_NOT_ASKED = ("admission could not be asked in time",)

_silent = logging.getLogger("gpuspawner.profiles.tried")
_silent.disabled = True


class Known(msgspec.Struct, frozen=True):
    """What pages have found out for later pages. One for the whole hub.

    Attributes:
        admitted: What admission made of a server's pods, without what the scheduler doesn't read,
            so that an open form asks seldom. A start asks again.
        rows: The availability of lists, each for all owners whose pods are alike.
    """

    admitted: KeptFor[object, Proposal] = msgspec.field(
        default_factory=lambda: KeptFor(_SECONDS, _MOST_KEPT)
    )
    lists: Lists = msgspec.field(default_factory=Lists)
    drawn: Drawn = msgspec.field(default_factory=Drawn)
    samples: Samples = msgspec.field(default_factory=Samples)
    rows: UntilChanged[Rows] = msgspec.field(default_factory=lambda: UntilChanged(_MOST_ROWS))


_known: WeakKeyDictionary[Runtime, Known] = WeakKeyDictionary()


def known(runtime: Runtime) -> Known:
    """Return what is known in a hub."""
    if runtime not in _known:
        _known[runtime] = Known()
    return _known[runtime]


JudgedChoice = tuple[PodShape | None, Availability | None]
"""What the scheduler reads of the pod of a choice, and the availability, if there is any."""


class Looking:
    """Finds out what a list's choices would get for one server.

    Args:
        spawner: The server; it isn't changed.
        entitlement: What the policies leave to its owner.
        later: What becomes of its pods.
        turn: How long it may hold the hub's event loop.

    Attributes:
        listed: The list.
        is_general: Whether what it has found holds for all servers whose pods are alike.
        depends_on_labels: Whether it does only if their labels and names are, too.
        settings: What the server's pods are made of, once its `base` is; None if its owner may be
            treated differently from others.
    """

    def __init__(
        self,
        spawner: Host,
        listed: Listed,
        runtime: Runtime,
        entitlement: Entitlement,
        later: Later,
        turn: Turn,
    ) -> None:
        self._spawner = spawner
        self.listed = listed
        self._entitlement = entitlement
        self._later = later
        self._view = runtime.view
        self._preflight = runtime.preflight
        self._decider = runtime.preflight.decider
        self._verdicts = runtime.preflight.verdicts
        self._known = known(runtime)
        self._turn = turn
        self.is_general = True
        self.depends_on_labels = False
        self._renew: Callable[[], Host] | None = None
        self._base: Proposal | None = None
        self._judged: dict[tuple[object, ...], JudgedChoice] = {}
        self._patterns = Patterns()
        self._asked_admission = False
        self.settings: bytes | None = None

    async def base(self) -> Proposal | None:
        """Return a sample of the default profile's pod; None if nobody can make or read it."""
        if self._base is None and self.listed.profiles:
            await self._begin()
        return self._base

    @property
    def holds_for_others(self) -> bool:
        """Whether what has been found holds for all owners with such `settings` and `base`.

        Not if a choice has a claim that the default hasn't, or if admission was asked about a pod.
        If the hub's own code may treat servers differently, it holds for this server alone.
        """
        is_of_all = self.settings is not None and not self._asked_admission
        return is_of_all and None not in self._patterns.values()

    async def look_at(self, profile: Profile, admission: Admission) -> ProfileAvailability:
        """Find out the availability of a profile, and of its choices that make a difference."""
        usual = await self._look(of_profile(profile), admission)
        choices: dict[ChoicePlace, Availability | None] = {}
        images: dict[ChoicePlace, bool] = {}
        for option in profile.options:
            alike = {choice.key: _only(profile, option, choice) for choice in option.choices}
            judged = {
                choice.key: usual
                if choice.default
                else await self._look(alike[choice.key], admission)
                for choice in option.choices
            }
            if len({self._told(*it) for it in judged.values()}) > 1:
                choices |= {(option.name, key): row for key, (_, row) in judged.items()}
            elif judged:
                images |= {(option.name, key): it for key, it in self._at_hand(alike).items()}
        return ProfileAvailability(usual[1], choices, images)

    def _told(self, shape: PodShape | None, row: Availability | None) -> object:
        """Return what tells choices apart: their pods, and what the hub's own code makes of them.

        It may be known for one choice and not for another one with an equal pod.
        """
        return shape, row.state if row and self._later.server else None

    async def deciding(self, profile: Profile) -> tuple[ProfileOption, ...]:
        """Return the options whose choices give pods that differ in what the scheduler reads."""
        found = []
        for option in profile.options:
            alone = [_only(profile, option, choice) for choice in option.choices]
            if len({self._shape(await self.proposal(it)) for it in alone}) > 1:
                found.append(option)
        return tuple(found)

    async def _look(self, chosen: Chosen, admission: Admission) -> JudgedChoice:
        """Judge a choice; choices with equal pods are judged once."""
        proposal = await self.proposal(chosen)
        if denied := self._entitlement.denied(proposal, chosen.slug):
            return self._shape(proposal), denied
        pattern = self._patterns.get(_key(chosen))
        if pattern is None:
            return await self._judge(chosen, proposal, admission)
        by_code = self._later.has_own_code
        known = (chosen.slug, self._expected(chosen, proposal).is_open) if by_code else ()
        key = id(pattern), known
        if key not in self._judged:
            self._judged[key] = await self._judge(chosen, proposal, admission)
        return self._judged[key]

    def _at_hand(self, chosen: Mapping[object, Chosen]) -> Mapping[object, bool]:
        """Say which choices need no download, by any keys, if their pods differ only in images."""
        patterns, state = self._patterns, self._view.state
        keys = tuple(map(_key, chosen.values()))
        wanted = {key: patterns.images.get(_key(it), ()) for key, it in chosen.items()}
        if len(set(wanted.values())) < 2:
            return {}
        if not isinstance(self._view.health(), Live):
            return dict.fromkeys(chosen, False)
        version = state.version, state.images.version
        found = patterns.at_hand.of(version, keys, lambda: self._on_all(keys[0], wanted))
        return {key: key in found for key in chosen}

    def _on_all(
        self, one: ChoiceKey, wanted: Mapping[object, tuple[str, ...]]
    ) -> frozenset[object]:
        """Return the choices whose images are on all nodes on which the pod of one of them fits."""
        pattern = self._patterns.get(one)
        if pattern is None or self._base is None:
            return frozenset()
        pod, state = _without_claims(pattern.applied(self._base).pod), self._view.state
        return on_all(state.images, wanted, partial(fitting_nodes, state, pod))

    async def fits_instead(self, refusal: Refuse, admission: Admission, chosen: Chosen) -> bool:
        """Whether a choice is an alternative to a refused one: it is allowed, and fits now."""
        proposal = self._expected(chosen, await self.whole(chosen))
        if self._entitlement.denied(proposal, chosen.slug):
            return False
        decision = await self._preflight.examine_instead(refusal, proposal, admission)
        return fits_now(decision)

    async def _judge(
        self, chosen: Chosen, proposal: Proposal, admission: Admission
    ) -> JudgedChoice:
        proposal = self._expected(chosen, proposal)
        shape = self._shape(proposal)
        decision = self._check(proposal)
        self.is_general = self.is_general and shape is not None and not proposal.queue
        pod = proposal.decoded
        self.depends_on_labels |= pod is None or self._verdicts.depends_on_labels(pod)
        if self._preflight.may_become_start(proposal, decision):
            self.is_general = False
            decision, proposal = await self._admitted(chosen, proposal, decision, admission)
        if proposal.grant.accelerator is None and isinstance(decision, Start):
            return shape, None  # a quiet page as long as all is well
        return shape, availability(decision, self._decider.room(proposal))

    async def proposal(self, chosen: Chosen) -> Proposal:
        """Return the proposal of a profile with at most one choice, with what decides about it."""
        await self._turn.end_if_long()  # there may be many profiles
        if self._base is None:
            await self._begin()
        pattern = self._patterns.get(_key(chosen))
        if pattern is not None and self._base is not None:
            return pattern.applied(self._base)
        made = await self.whole(chosen)
        read = sample(made)
        if read is not None and self._base is not None:
            self._patterns.images[_key(chosen)] = settled_images(made.pod)
            made_like = Pattern.of(read, self._base)
            alike = (it for it in self._patterns.values() if it == made_like)
            self._patterns[_key(chosen)] = next(alike, made_like)
        return read or made

    async def whole(self, chosen: Chosen) -> Proposal:
        """Return the proposal of a choice, without logging the errors of making its pod."""
        if self._renew is None:
            copied = hooks.as_started(self._spawner).gpuspawner_copy()
            copied.log = _silent
            self._renew = renewing(copied)
        renewed = self._renew()
        if any(option.write_in and option.write_in.may_move for option in chosen.open):
            return unknown(renewed)
        try:
            return await try_out(renewed, self.listed.complete, chosen, self._view.state.rules)
        except web.HTTPError:
            return unknown(renewed)

    def _expected(self, chosen: Chosen, proposal: Proposal) -> Proposal:
        """Return the proposal as it will be sent; it may be that of a choice with an equal pod."""
        its = dataclasses.replace(proposal, profile=chosen.slug)
        return its.expecting(self._later, chosen.settled)

    def _shape(self, proposal: Proposal) -> PodShape | None:
        """Return what the scheduler reads of the pod at this moment; None if it can't be read."""
        subject = proposal.subject
        return self._verdicts.shape(subject) if isinstance(subject, Subject) else None

    def _check(self, proposal: Proposal) -> Decision:
        """Decide as `Decider.check`, without finding all nodes on which a pod fits."""
        if isinstance(self._view.health(), Live) and self._decider.fits(proposal):
            return Start(proposal.grant)
        return self._decider.check(proposal)

    async def _begin(self) -> None:
        """Make the pod of the default profile, and find the patterns of users like this one."""
        default = next(it for it in self.listed.profiles if it.default)
        whole = await self.whole(of_profile(default))
        base = sample(whole)
        if base is None:
            return
        makes_them = kubespawner.makes_its_pods(self._spawner)
        if makes_them and not (self.listed.has_functions or self.listed.has_names):
            started = hooks.as_started(self._spawner)
            alike = likeness(started)
            if alike and not (alike.has_names and self.listed.hides_names(started)):
                self.settings = alike.settings
        patterns = self._known.samples.patterns(self.listed, base, self.settings)
        patterns.images[_key(of_profile(default))] = settled_images(whole.pod)
        # Not in the place of an equal one, with which other choices share it.
        patterns.setdefault(_key(of_profile(default)), Pattern.of(base, base))
        self._base, self._patterns = base, patterns

    async def _admitted(
        self, chosen: Chosen, proposal: Proposal, decision: Decision, admission: Admission
    ) -> tuple[Decision, Proposal]:
        """Decide about a refused pod as admission changes it."""
        self._asked_admission = True
        key = (proposal.key, self.listed, _key(chosen), placement_of(proposal.pod))
        kept = self._known.admitted.find(key)
        if kept is None:
            not_asked = Start(proposal.grant, (UnknownRules(_NOT_ASKED),))
            try:
                whole = self._expected(chosen, await self.whole(chosen))
                answer = await self._preflight.learned.admitted(whole, admission)
            except TooManyDryRunsError:
                return decision if isinstance(decision, Wait) else not_asked, proposal
            if answer is None:  # as at the start
                return self._preflight.unless_guessed(whole, decision), proposal
            # A quota's or webhook's rejection concerns the user, not the state of the nodes.
            read = None if isinstance(answer, Rejection) else sample(answer)
            kept = read or proposal
            self._known.admitted.keep(key, kept)
        return self._check(kept), kept


def _only(profile: Profile, option: ProfileOption, choice: ListedChoice) -> Chosen:
    """Choose a profile with one choice, and the defaults for its other options."""
    chosen = of_profile(profile)
    return chosen if choice.default else chosen.instead(option, choice)


def _without_claims(pod: Manifest) -> Manifest:
    """Return a pod without its claims, which may not exist yet."""
    volumes = [it for it in pod["spec"].get("volumes") or () if not it.get("persistentVolumeClaim")]
    return {**pod, "spec": {**pod["spec"], "volumes": volumes}}


def _key(chosen: Chosen) -> ChoiceKey:
    """Return the key of a profile, with at most one choice that isn't the default."""
    slug = chosen.slug
    for name, choice in chosen.options.items():
        if name != "profile":
            return slug, name, choice
    return slug, "", None
