"""Who may wait in line, from the trait `queue`, read strictly."""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from gpuspawner.kube.quoting import did_you_mean, quote
from gpuspawner.line.order import PART
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.shapes import OfferError, Shape, Some, Text, offered_key, read

PLACES = 10_000
"""The most people in line, unless the trait says otherwise."""
_Places = Annotated[int, Meta(ge=1, le=100_000)]
_Minutes = Annotated[float, Meta(ge=1, le=7 * 24 * 60)]
_Part = Annotated[float, Meta(ge=0, le=1)]
_Weight = Annotated[float, Meta(ge=0.01, le=100)]


class QueueRules(Shape, frozen=True):
    """The rules of the line, by the keys of the trait.

    Attributes:
        accelerators: The keys of those that people may wait for; None for all.
        profiles: The slugs of the profiles; None for all.
        policies: At least one of these policies has to apply to the owner; None for everybody.
        weights: How much each second of waiting counts, by group; 1 for others.
        places: How many may wait at a time.
        places_per_user: How many of one user's servers may.
        part_kept_free: On which part of the nodes that somebody could use others collect at most.
        minutes_away: How long a place is kept for somebody who has left the page.
        minutes_idle: How long nobody has used a server that is called idle.
    """

    accelerators: Some[Text] | None = None
    profiles: Some[Text] | None = None
    policies: Some[Text] | None = None
    weights: Mapping[Text, Any] = {}
    places: _Places = PLACES
    places_per_user: _Places = 1
    part_kept_free: _Part = PART
    minutes_away: _Minutes = 15
    minutes_idle: _Minutes = 30

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
    rules = read({} if given is True else given, QueueRules, "queue")
    for name in rules.policies or ():
        if policies is not None and name not in policies:
            reason = f"there is no policy {quote(name)}{did_you_mean(name, policies)}"
            raise OfferError("queue.policies", reason)
    return replace(
        rules,
        accelerators=_known(rules.accelerators, offers),
        weights=MappingProxyType(_weights(rules.weights)),
    )


def _weights(written: Mapping[str, object]) -> dict[str, float]:
    return {it: read(n, _Weight, f"queue.weights[{quote(it)}]") for it, n in written.items()}


def _known(keys: tuple[str, ...] | None, offers: Offers) -> tuple[str, ...] | None:
    if keys is None:
        return None
    place, what = "queue.accelerators", "accelerator "
    return tuple(offered_key(it, offers.accelerators, place, what) for it in keys)
