"""What is shared among users whose pods are alike: the pods of profiles, and the profiles' states.

KubeSpawner takes about a millisecond for a pod, and a list may have a hundred choices. So a page
makes the pod of the default profile for its user. If this pod was the same for an earlier user with
the same settings, but for names, labels and claims, so are those of all other choices, and the page
takes these. The pod alone doesn't tell: its profile may replace what other profiles leave.
Functions in a list and other classes' methods may treat users differently. Their pods are kept for
one server alone, and only for a moment.

To judge a hundred choices takes milliseconds too. As long as nothing changes that their states
depend on, the next page needs only to know that its owner's pods would be the same but for names.
"""

import time
from collections.abc import Sequence
from dataclasses import replace

import msgspec
from msgspec import msgpack

from gpuspawner.cluster.health import Live
from gpuspawner.compat.kubespawner import makes_its_pods
from gpuspawner.compat.likeness import likeness
from gpuspawner.kube.caches import Recent, UntilChanged
from gpuspawner.kube.objects import Manifest, manifest_of
from gpuspawner.offers.grant import Grant
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.preflight.token_bucket import Clock
from gpuspawner.profiles.profile_availability import ProfileAvailability
from gpuspawner.profiles.profile_list import Listed
from gpuspawner.runtime import Runtime
from gpuspawner.scaling.pools import DeclaredPool
from gpuspawner.start import hooks
from gpuspawner.start.host import Host
from gpuspawner.start.kueue_queue import queue_for
from gpuspawner.start.policing import Entitlement

_MOST_SAMPLES = 64
"""Users who differ, and lists; each has a pod for each choice."""
_SECONDS_FOR_ONE = 60.0

_CLAIM = "persistentVolumeClaim"

ChoiceKey = tuple[str, str, object]
"""A profile, and the name of an option and the key of its choice; empty for the defaults."""


def sample(made: Proposal) -> Proposal | None:
    """Return a proposal with only what the scheduler reads; None if its pod can't be read.

    KubeSpawner's pod also holds tokens, which must not be kept.
    """
    return replace(made, pod=manifest_of(made.decoded)) if made.decoded else None


class Pattern(msgspec.Struct, frozen=True):
    """A pod without what KubeSpawner names after its owner."""

    spec: Manifest
    grant: Grant
    pool: DeclaredPool | None

    @classmethod
    def of(cls, made: Proposal, base: Proposal) -> "Pattern | None":
        """Return the pattern of a sample; None if it differs from *base* in what has a name.

        *base* is the sample of the same owner's default profile.
        """
        if (made.namespace, made.name, made.new_claims) != (
            (base.namespace, base.name, base.new_claims)
        ) or made.pod.get("metadata") != base.pod.get("metadata"):
            return None
        volumes, claims = made.pod["spec"].get("volumes") or (), _claims(base)
        if any(it not in claims for it in volumes if _CLAIM in it):
            return None
        unnamed = [{_CLAIM: claims.index(it)} if _CLAIM in it else it for it in volumes]
        return cls({**made.pod["spec"], "volumes": unnamed}, made.grant, made.pool)

    def applied(self, base: Proposal) -> Proposal:
        """Return the sample for the owner of *base*."""
        claims = _claims(base)
        volumes = [claims[it[_CLAIM]] if _CLAIM in it else it for it in self.spec["volumes"]]
        pod = {**base.pod, "spec": {**self.spec, "volumes": volumes}}
        return replace(base, pod=pod, grant=self.grant, pool=self.pool)


def _claims(base: Proposal) -> Sequence[Manifest]:
    """Return the volumes with claims: both may have names of the owner's."""
    return [it for it in base.pod["spec"].get("volumes") or () if _CLAIM in it]


class Patterns(dict[ChoiceKey, Pattern | None]):
    """The pattern of each choice's pod.

    Attributes:
        images: What its containers need, as `settled_images` has it.
        at_hand: Of several choices, those that need no download, whoever asked.
    """

    def __init__(self) -> None:
        super().__init__()
        self.images: dict[ChoiceKey, tuple[str, ...]] = {}
        self.at_hand = UntilChanged[frozenset[object]]()


class _Kept(msgspec.Struct, frozen=True):
    listed: Listed  # keeps its id from being used again
    until: float
    patterns: Patterns


class Samples:
    """The patterns of all lists. One for the whole hub."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._kept = Recent[object, _Kept](_MOST_SAMPLES)

    def patterns(self, listed: Listed, base: Proposal, settings: bytes | None) -> Patterns:
        """Return the kept patterns of owners like that of *base*, to be read and added to.

        *settings* are those of its pods; None if these may differ from those of all others.
        """
        of_base = Pattern.of(base, base)
        whose = base.key if settings is None else settings
        key = (id(listed), msgpack.encode(of_base.spec if of_base else None), whose)
        kept = self._kept.get(key)
        if kept is None or kept.until < self._clock():
            until = self._clock() + _SECONDS_FOR_ONE if settings is None else float("inf")
            kept = self._kept[key] = _Kept(listed, until, Patterns())
        self._kept.move_to_end(key)
        return kept.patterns


Rows = tuple[ProfileAvailability, ...]
"""The availability of each profile of a list."""


class Page:
    """One server's page of profiles.

    Attributes:
        alone: The key of its states if they hold for no other server.
        shared: Their key for all servers whose pods are alike.
    """

    def __init__(
        self, spawner: Host, listed: Listed, runtime: Runtime, entitlement: Entitlement
    ) -> None:
        self._runtime = runtime
        started = hooks.as_started(spawner)
        self._key = started.namespace, started.pod_name
        self._has_policies = entitlement.is_limited
        is_alone = listed.has_functions or not makes_its_pods(spawner)
        found = None if is_alone else likeness(started)
        queue = queue_for(started, runtime.view.queues)
        later = hooks.later(spawner, runtime.preflight.learned.placements, spawner.name)
        self._is_known = found is not None and not queue and not later.server
        self.alone = (listed, found.alone) if found else None
        common = found and (found.alone if listed.has_names else found.but_for_names)
        self.shared = (listed, common) if found else None

    def version(self) -> object:
        """Return the version of everything that isn't in the keys."""
        return self._runtime.surveys.version, self._runtime.preflight.learned.version

    def is_general(self) -> bool:
        """Whether the states hold for others at this moment.

        They don't for somebody with policies, with an older pod or a reservation, or in a queue of
        Kueue; nor as long as somebody waits in line.
        """
        runtime, preflight = self._runtime, self._runtime.preflight
        state, name = runtime.view.state, "/".join(self._key)
        return (
            self._is_known
            and not self._has_policies
            and isinstance(runtime.view.health(), Live)
            and preflight.line.is_empty
            and name not in state.pods
            and name not in state.unbound_pods
            and preflight.reservations.find(self._key) is None
        )
