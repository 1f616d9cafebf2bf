"""Who may wait in line, from the trait `queue`, read strictly."""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from gpuspawner.kube.quoting import did_you_mean, quote
from gpuspawner.line.kept_nodes import PART
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.shapes import OfferError, Shape, Some, Text, offered_key, read

PLACES = 10_000
"""The most people in line, unless the trait says otherwise."""
_Places = Annotated[int, Meta(ge=1, le=100_000)]
_Minutes = Annotated[float, Meta(ge=1, le=7 * 24 * 60)]
_Part = Annotated[float, Meta(ge=0, le=1)]
_Weight = Annotated[float, Meta(ge=0.01, le=100)]


class WrittenQueue(Shape, frozen=True):
    """The keys of the trait."""

    accelerators: Some[Text] | None = None
    profiles: Some[Text] | None = None
    policies: Some[Text] | None = None
    weights: Mapping[Text, Any] | None = None
    places: _Places = PLACES
    places_per_user: _Places = 1
    part_kept_free: _Part = PART
    minutes_away: _Minutes = 15
    minutes_idle: _Minutes = 30


class QueueRules(msgspec.Struct, frozen=True):
    """The rules of the line.

    Attributes:
        accelerators: The keys of those that people may wait for; None for all.
        profiles: The slugs of the profiles; None for all.
        policies: At least one of these policies has to apply to the owner; None for everybody.
        weights: How much each second of waiting counts, by group; 1 for others.
        places: How many may wait at a time.
        places_per_user: How many of one user's servers may.
        part_kept_free: On which part of the nodes that somebody could use others collect at most.
        seconds_away: How long a place is kept for somebody who has left the page.
        seconds_idle: How long nobody has used a server that is called idle.
    """

    accelerators: frozenset[str] | None = None
    profiles: frozenset[str] | None = None
    policies: frozenset[str] | None = None
    weights: Mapping[str, float] = msgspec.field(default_factory=dict)
    places: int = PLACES
    places_per_user: int = 1
    part_kept_free: float = PART
    seconds_away: float = 15 * 60.0
    seconds_idle: float = 30 * 60.0

    def allow(self, accelerator: str | None, profile: str) -> bool:
        """Whether people may wait for a server with an accelerator, or of a profile."""
        if profile:
            return self.profiles is None or profile in self.profiles
        return self.accelerators is None or accelerator in self.accelerators

    def weight(self, groups: Iterable[str]) -> float:
        """Return how much each second counts for a member of these groups: the most of them."""
        return max((self.weights[it] for it in groups if it in self.weights), default=1.0)


def read_queue(
    given: object, offers: Offers, policies: Collection[str] | None = None
) -> QueueRules:
    """Read the trait.

    Args:
        given: Its value, unless there is no line.
        offers: What the administrator offers.
        policies: The names of all policies; None if nobody knows them yet.

    Raises:
        OfferError: It isn't valid; the text names the key.
    """
    written = read({} if given is True else given, WrittenQueue, "queue")
    return QueueRules(
        accelerators=_known(written.accelerators, offers),
        profiles=None if written.profiles is None else frozenset(written.profiles),
        policies=_policies(written.policies, policies),
        weights=MappingProxyType(_weights(written.weights or {})),
        places=written.places,
        places_per_user=written.places_per_user,
        part_kept_free=written.part_kept_free,
        seconds_away=60 * written.minutes_away,
        seconds_idle=60 * written.minutes_idle,
    )


def _weights(written: Mapping[str, object]) -> dict[str, float]:
    return {it: read(n, _Weight, f"queue.weights[{quote(it)}]") for it, n in written.items()}


def _known(keys: tuple[str, ...] | None, offers: Offers) -> frozenset[str] | None:
    if keys is None:
        return None
    place, what = "queue.accelerators", "accelerator "
    return frozenset(offered_key(it, offers.accelerators, place, what) for it in keys)


def _policies(
    names: tuple[str, ...] | None, known: Collection[str] | None
) -> frozenset[str] | None:
    if names is None:
        return None
    for name in names:
        if known is not None and name not in known:
            reason = f"there is no policy {quote(name)}{did_you_mean(name, known)}"
            raise OfferError("queue.policies", reason)
    return frozenset(names)
