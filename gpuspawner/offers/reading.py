"""A place in a configuration value, that knows how to say what is wrong there."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from gpuspawner.quoting import did_you_mean, quote

MOST = 100_000
"""Of nothing that is counted here is there more: not of GPUs in a machine, not of machines."""

Fields: TypeAlias = "dict[str, At]"


class OfferError(ValueError):
    """What an administrator offers is not usable; the hub must not start with it.

    Attributes:
        trait: Name of the trait of GPUSpawner, such as `accelerators`.
        path: Where in its value, such as `['a100'].counts[1]`; empty for the whole value.
        reason: What is wrong and what is allowed.
    """

    def __init__(self, trait: str, path: str, reason: str) -> None:
        super().__init__(f"GPUSpawner.{trait}{path}: {reason}")
        self.trait = trait
        self.path = path
        self.reason = reason


@dataclass(frozen=True, slots=True)
class At:
    """A value and where it stands in a trait. Every method raises `OfferError` for that place."""

    trait: str
    path: str
    value: object

    def error(self, reason: str) -> OfferError:
        """An error for this place, to be raised by the caller."""
        return OfferError(self.trait, self.path, reason)

    def text(self) -> str:
        """A text that is not empty."""
        if not isinstance(self.value, str):
            raise self.error(f"{quote(self.value)} is not text; write it in quotes")
        if not self.value.strip():
            raise self.error("is empty; write a text or leave it out")
        return self.value

    def whole(self, noun: str = "number") -> int:
        """A whole number from 1 to `MOST`."""
        # A bool is an int to Python, and `yes` is a bool to YAML.
        number = self.value if isinstance(self.value, int) else 0
        if isinstance(self.value, bool) or not 1 <= number <= MOST:
            raise self.error(
                f"{quote(self.value)} is not a {noun}; use whole numbers from 1 to {MOST}"
            )
        return number

    def items(self) -> "Iterator[At]":
        """The places of a list's items."""
        if not isinstance(self.value, list | tuple):
            raise self.error(f"{quote(self.value)} is not a list")
        for index, item in enumerate(self.value):
            yield At(self.trait, f"{self.path}[{index}]", item)

    def entries(self) -> "Iterator[tuple[str, At]]":
        """The keys of a mapping whose keys the administrator chooses, and their places."""
        for key, value in self._mapping().items():
            yield key, At(self.trait, f"{self.path}[{quote(key)}]", value)

    def fields(self, allowed: Iterable[str], required: Iterable[str] = ()) -> Fields:
        """The places of a mapping whose keys are fixed; keys with null count as left out."""
        allowed = tuple(allowed)
        given = self._mapping()
        for key in given:
            if key not in allowed:
                hint = did_you_mean(key, allowed) or f"; allowed are {', '.join(allowed)}"
                raise self.error(f"unknown key {quote(key)}{hint}")
        found = {
            k: At(self.trait, f"{self.path}.{k}", v) for k, v in given.items() if v is not None
        }
        for key in required:
            if key not in found:
                raise self.error(f"{quote(key)} is missing")
        return found

    def _mapping(self) -> Mapping[str, object]:
        if not isinstance(self.value, Mapping):
            raise self.error(f"{quote(self.value)} is not a mapping")
        for key in self.value:
            if not isinstance(key, str):
                raise self.error(f"the key {quote(key)} is not text; write it in quotes")
        return self.value
