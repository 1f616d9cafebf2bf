"""The keys of accelerators and images, which the administrator chooses."""

import string
from collections.abc import Mapping
from typing import Annotated, TypeVar

from msgspec import Meta

from gpuspawner.offers import texts
from gpuspawner.offers.errors import OfferError
from gpuspawner.offers.shapes import read
from gpuspawner.quoting import quote

T = TypeVar("T")

_Key = Annotated[str, Meta(pattern=texts.KEY)]
_SAME = str.maketrans(f"{string.ascii_uppercase}_", f"{string.ascii_lowercase}-")


def same_key(key: str) -> str:
    """The form in which two keys that people would confuse are equal: `A100_80` as `a100-80`.

    Letters beyond ASCII are left alone: some of them have an ASCII letter for their small one.
    """
    return key.translate(_SAME)


def keyed(value: object, kind: type[T], trait: str) -> dict[str, T]:
    """A trait that is a mapping of such keys to shapes."""
    if not isinstance(value, Mapping):
        raise OfferError(trait, f"{quote(value)} is not a mapping")
    found: dict[str, T] = {}
    spellings: dict[str, str] = {}
    for key, part in value.items():
        if not isinstance(key, str):
            raise OfferError(trait, f"the key {quote(key)} is not text; write it in quotes")
        read(key, _Key, trait)
        other = spellings.setdefault(same_key(key), key)
        if other != key:
            reason = f"{quote(other)} and {quote(key)} are one key; rename one of them"
            raise OfferError(trait, reason)
        found[key] = read(part, kind, f"{trait}[{quote(key)}]")
    return found
