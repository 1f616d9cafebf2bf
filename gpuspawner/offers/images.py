"""An image, as it is written and as it is offered."""

from collections.abc import Collection
from typing import Annotated

from msgspec import Meta

from gpuspawner.offers import texts
from gpuspawner.offers.errors import OfferError
from gpuspawner.offers.keys import same_key
from gpuspawner.offers.shapes import Shape, Some, Text
from gpuspawner.offers.types import Image
from gpuspawner.quoting import did_you_mean, listing, quote


class WrittenImage(Shape, frozen=True):
    """One of `images`."""

    image: Annotated[str, Meta(pattern=texts.IMAGE)]
    display_name: Text = ""
    accelerators: Some[Text | None] | None = None


def image(key: str, written: WrittenImage, place: str, accelerators: Collection[str]) -> Image:
    """An image; `accelerators` are the keys it may be tied to, empty if they are not known yet."""
    by_same = {same_key(known): known for known in accelerators}
    tied: set[str | None] = set()
    for index, name in enumerate(written.accelerators or ()):
        if name is not None and by_same and same_key(name) not in by_same:
            hint = did_you_mean(name, accelerators) or f"; there are {listing(accelerators)}"
            reason = f"there is no accelerator {quote(name)}{hint}"
            raise OfferError(f"{place}.accelerators[{index}]", reason)
        tied.add(name and by_same.get(same_key(name), name))
    return Image(key, written.display_name or key, written.image, frozenset(tied) or None)
