"""The declaration of each option: its values, its default, and how a value can be written.

The ways to write a value are a check and a JSON Schema at the same time. `schema` returns the
options as a JSON Schema, for programs that start servers and for other people's forms. It accepts
exactly the options that `gpuspawner.offers.user_options.parse` reads into a request.
"""

import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Generic, Literal, TypeAlias, TypeVar

import msgspec

from gpuspawner.language import sentences
from gpuspawner.offers import wording
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.shapes import Memory
from gpuspawner.offers.texts import LONGEST, REFERENCE, whole
from gpuspawner.offers.types import Accelerator, Choices, Image

Schema: TypeAlias = dict[str, object]
"""A JSON Schema, draft 2020-12, as plain data."""

_UNITS = {
    "": 1,
    **{f"{prefix}i": 1024**power for power, prefix in enumerate("KMGTPE", 1)},
    **{prefix: 1000**power for power, prefix in enumerate("kMGTPE", 1)},
}


class Number(msgspec.Struct, frozen=True):
    """A number, written with or without a decimal point."""

    value: int | float

    def stands_in(self, given: object) -> bool:
        """Whether a value is this number; a boolean never is."""
        return is_number(given) and given == self.value

    def schema(self) -> Schema:
        """Accept only this number."""
        return {"const": self.value}


class OfferKey(msgspec.Struct, frozen=True):
    """An administrator's key, in upper or lower case, with `_` for `-` or the reverse."""

    key: str
    title: str

    def stands_in(self, given: object) -> bool:
        """Whether a value is the same key for `gpuspawner.offers.shapes.same_key`."""
        return isinstance(given, str) and _expression(self.key).search(given) is not None

    def schema(self) -> Schema:
        """Return a pattern, with the stored key as an example."""
        pattern = _expression(self.key).pattern
        return {
            "type": "string",
            "pattern": pattern,
            "title": self.title,
            "examples": [self.key],
        }


class Size(msgspec.Struct, frozen=True):
    """A memory size, as the administrator wrote it or as a whole number of any unit."""

    memory: Memory

    def stands_in(self, given: object) -> bool:
        """Whether a value is the same number of bytes."""
        return isinstance(given, str) and given in _texts(self.memory)

    def schema(self) -> Schema:
        """List all ways to write it, the administrator's first."""
        return {"enum": list(_texts(self.memory))}


Spelling: TypeAlias = Number | OfferKey | Size
"""The ways to write a choice. A value of another type never stands for it."""


def is_number(value: object) -> bool:
    """Whether a JSON value is a number; to Python, booleans are numbers too."""
    return isinstance(value, int | float) and not isinstance(value, bool)


@lru_cache(maxsize=1024)
def _expression(key: str) -> re.Pattern[str]:
    return re.compile(whole("".join(_any_of(character) for character in key)))


def _any_of(character: str) -> str:
    if character.isalpha():
        return f"[{character.upper()}{character.lower()}]"
    return "[_-]" if character in "_-" else re.escape(character)


@lru_cache(maxsize=1024)
def _texts(memory: Memory) -> tuple[str, ...]:
    amounts = ((Fraction(memory.bytes, size), unit) for unit, size in _UNITS.items())
    texts = (f"{amount}{unit}" for amount, unit in amounts if amount.denominator == 1)
    return tuple(dict.fromkeys((memory.text, *texts)))


T = TypeVar("T")

ACCELERATOR = "accelerator"
_ABOUT_ACCELERATOR = "Key of an offered accelerator; null for a server without a GPU."


Written: TypeAlias = str | int | float | None
"""A choice as `user_options` holds it."""


class FieldError(msgspec.Struct, frozen=True):
    """An error at an option.

    Attributes:
        field: Name of the option; empty if the error is about the request as a whole.
        text: Whole sentences in the user's language: what is wrong, and what is allowed; not yet
            escaped for HTML.
        label: What a form that isn't ours calls the option; empty if it is ours, and marks it.
    """

    field: str
    text: str
    label: str = ""


class WrittenIn(msgspec.Struct, Generic[T], frozen=True):
    """Choices that aren't listed, but can be entered.

    Attributes:
        find: Returns the choice that a value stands for; None if it stands for none.
        schema: The JSON Schema that accepts exactly the values that stand for a choice.
        hint: A description of these values for the user.
    """

    find: Callable[[object], T | None]
    schema: Schema
    hint: str


class Option(msgspec.Struct, Generic[T], frozen=True):
    """An option whose choices depend on the accelerator.

    Attributes:
        name: Its name in the form, query, REST body and `user_options`.
        type: The JSON type of its values.
        help: Its description in the JSON Schema.
        choices: The listed choices.
        default: The choice if the option is left out.
        write: Returns a choice as `user_options` holds it.
        spelled: The ways to write a listed choice.
        unlisted: The choices that aren't listed, if any.
    """

    name: str
    type: Literal["number", "string"]
    help: str
    choices: Callable[[Choices], tuple[T, ...]]
    default: Callable[[Choices], T | None]
    write: Callable[[T], Written]
    spelled: Callable[[T], Spelling]
    unlisted: Callable[[Choices], WrittenIn[T] | None] = lambda _: None

    def read(self, given: object, choices: Choices, accelerator: str) -> Written | FieldError:
        """Return the choice that a value stands for, as `user_options` holds it, or an error.

        `given` is None if the option was left out; `accelerator` is the name for users, or "".
        """
        found = self.default(choices) if given is None else self._find(given, choices)
        if found is not None:
            return self.write(found)
        if given is None:
            return None
        return FieldError(self.name, self._why(given, choices, accelerator))

    def schema(self, choices: Choices) -> Schema:
        """Return the JSON Schema that accepts exactly the values that `read` takes, and null."""
        listed = [self.spelled(choice).schema() for choice in self.choices(choices)]
        unlisted = self.unlisted(choices)
        taken = self.default(choices)
        return {
            "anyOf": [{"type": "null"}, *listed, *([unlisted.schema] if unlisted else [])],
            "default": None if taken is None else self.write(taken),
        }

    def _find(self, given: object, choices: Choices) -> T | None:
        for choice in self.choices(choices):
            if self.spelled(choice).stands_in(given):
                return choice
        unlisted = self.unlisted(choices)
        return unlisted.find(given) if unlisted else None

    def _why(self, given: object, choices: Choices, accelerator: str) -> str:
        listed, unlisted = self.choices(choices), self.unlisted(choices)
        if not listed and unlisted is None:
            return wording.no_choice_with(accelerator)
        if self.type == "number" and not is_number(given):
            problem = wording.not_a_number(given)
        elif self.type == "string" and not isinstance(given, str):
            problem = wording.not_text(given)
        else:
            problem = wording.not_offered_with(given, accelerator)
        offered = [self._told(choice) for choice in listed]
        return sentences(problem, wording.choose(offered, unlisted.hint if unlisted else ""))

    def _told(self, choice: T) -> str:
        """Name a choice for those who see a form, and for programs."""
        key, spelled = str(self.write(choice)), self.spelled(choice)
        title = spelled.title if isinstance(spelled, OfferKey) else key
        return key if title == key else f"{title} ({key})"


def in_cores(millicores: int) -> int | float:
    """Return cores as options have them: an int if the number is whole."""
    return millicores / 1000 if millicores % 1000 else millicores // 1000


def _images_written_in(choices: Choices) -> WrittenIn[Image] | None:
    allowed = choices.unlisted_image
    if allowed is None:
        return None
    patterns = whole(REFERENCE), allowed.allowed.pattern
    return WrittenIn(
        find=lambda given: allowed.image(given) if isinstance(given, str) else None,
        schema={
            "type": "string",
            "maxLength": LONGEST,
            "allOf": [{"pattern": pattern} for pattern in patterns],
            "title": wording.unlisted_name(allowed),
        },
        hint=wording.unlisted_hint(allowed),
    )


def _sizes_written_in(choices: Choices) -> WrittenIn[Memory] | None:
    allowed = choices.unlisted_memory
    if allowed is None:
        return None
    sizes = [Size(memory) for memory in allowed.sizes]
    return WrittenIn(
        find=lambda given: next((it.memory for it in sizes if it.stands_in(given)), None),
        schema={
            "anyOf": [it.schema() for it in sizes],
            "title": wording.unlisted_name(allowed),
        },
        hint=wording.unlisted_hint(allowed),
    )


GPUS: Option[int] = Option(
    name="gpus",
    type="number",
    help="Number of GPUs; 0 without an accelerator, and only then.",
    choices=lambda choices: choices.counts,
    default=lambda choices: choices.default.gpus,
    write=lambda count: count,
    spelled=Number,
)
IMAGE: Option[Image] = Option(
    name="image",
    type="string",
    help="Key of an image that is offered with the accelerator.",
    choices=lambda choices: choices.images,
    unlisted=_images_written_in,
    default=lambda choices: choices.image(choices.default.image or ""),
    write=lambda image: image.key,
    spelled=lambda image: OfferKey(image.key, image.display_name),
)
MEMORY: Option[Memory] = Option(
    name="memory",
    type="string",
    help="A memory size, such as 16Gi.",
    choices=lambda choices: choices.memory,
    unlisted=_sizes_written_in,
    default=lambda choices: choices.default.memory,
    write=lambda memory: memory.text,
    spelled=Size,
)
CPU: Option[int] = Option(
    name="cpu",
    type="number",
    help="Number of CPU cores.",
    choices=lambda choices: choices.cpu,
    default=lambda choices: choices.default.cpu,
    write=in_cores,
    spelled=lambda millicores: Number(in_cores(millicores)),
)

OPTIONS: tuple[Option[int] | Option[Image] | Option[Memory], ...] = (GPUS, IMAGE, MEMORY, CPU)
"""All options except the accelerator, on which they depend."""

NAMES = (ACCELERATOR, *(option.name for option in OPTIONS))


def schema(offers: Offers) -> Schema:
    """Return the JSON Schema (draft 2020-12) of the options for these offers."""
    about = {
        ACCELERATOR: {"type": ["string", "null"], "description": _ABOUT_ACCELERATOR},
        **{it.name: {"type": [it.type, "null"], "description": it.help} for it in OPTIONS},
    }
    unnamed = ({**case, "not": {"required": [ACCELERATOR]}} for case in _unnamed(offers))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Options of a server",
        "type": "object",
        "properties": about,
        "additionalProperties": False,
        "anyOf": [*_named(offers), *unnamed],
    }


def _named(offers: Offers) -> Iterator[Schema]:
    """Yield a case for each accelerator that the key names, and one for no accelerator."""
    for accelerator in offers.accelerators.values():
        key = OfferKey(accelerator.key, accelerator.display_name).schema()
        yield _case(offers, accelerator, {ACCELERATOR: key}, required=[ACCELERATOR])
    none: Schema = {"type": "null", "title": "No GPU"}
    yield _case(offers, None, {ACCELERATOR: none}, required=[ACCELERATOR])


def _unnamed(offers: Offers) -> Iterator[Schema]:
    """Yield a case for each server that one gets who leaves the accelerator out."""
    chosen = offers.accelerators.get(offers.default_accelerator or "")
    if chosen is not None:
        yield _case(offers, chosen, {})
        yield _case(offers, None, {GPUS.name: {"const": 0}}, required=[GPUS.name])
        return
    yield _case(offers, None, {})
    if len(offers.accelerators) == 1:
        (only,) = offers.accelerators.values()
        count = {"type": GPUS.type, **GPUS.schema(offers.choices(only))}
        yield _case(offers, only, {GPUS.name: count}, required=[GPUS.name])


def _case(
    offers: Offers,
    accelerator: Accelerator | None,
    exactly: dict[str, Schema],
    required: list[str] | None = None,
) -> Schema:
    choices = offers.choices(accelerator)
    properties = {option.name: option.schema(choices) for option in OPTIONS}
    return {"properties": {**properties, **exactly}, "required": required or []}
