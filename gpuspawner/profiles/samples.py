"""The pods of profiles and their choices, kept for all users whose pods are alike.

KubeSpawner takes about a millisecond for a pod, and a list may have a hundred choices. So a page
makes the pod of the default profile for its user. If this pod was the same for an earlier user with
the same settings, but for names, labels and claims, so are those of all other choices, and the page
takes these. The pod alone doesn't tell: its profile may replace what other profiles leave.
Functions in a list and other classes' methods may treat users differently. Their pods are kept for
one server alone, and only for a moment.
"""

import time
from collections.abc import Sequence
from dataclasses import replace

import msgspec
from msgspec import msgpack

from gpuspawner.kube.caches import Recent, UntilChanged
from gpuspawner.kube.objects import Manifest, manifest_of
from gpuspawner.offers.grant import Grant
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.preflight.token_bucket import Clock
from gpuspawner.profiles.profile_list import Listed
from gpuspawner.scaling.declared import DeclaredPool

_MOST_KEPT = 64
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
        self._kept = Recent[object, _Kept](_MOST_KEPT)

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
