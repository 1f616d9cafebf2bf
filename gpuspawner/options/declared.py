"""The declaration of each option: its values, its default, and how a value can be written."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from gpuspawner.offers import Choices, Image, Memory
from gpuspawner.offers.references import LONGEST, REFERENCE, whole
from gpuspawner.options import wording
from gpuspawner.options.request import FieldError, Written
from gpuspawner.options.spelling import Key, Number, Schema, Size, Spelling, is_number

T = TypeVar("T")

ACCELERATOR = "accelerator"
ABOUT_ACCELERATOR = "Key of an offered accelerator; null for a server without a GPU."


@dataclass(frozen=True, slots=True)
class WrittenIn(Generic[T]):
    """Choices that aren't listed, but can be entered.

    Attributes:
        find: Returns the choice that a value stands for; None if it stands for none.
        schema: The JSON Schema that accepts exactly the values that stand for a choice.
        hint: A description of these values for the user.
    """

    find: Callable[[object], T | None]
    schema: Schema
    hint: str


@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """An option whose choices depend on the accelerator.

    Attributes:
        name: Its name in the form, query, REST body and `user_options`.
        type: The JSON type of its values.
        help: Its description in the JSON Schema.
        choices: The listed choices.
        unlisted: The choices that aren't listed; None if there are none.
        default: The choice if the option is left out.
        write: Returns a choice as `user_options` holds it.
        spelled: The ways to write a listed choice.
    """

    name: str
    type: Literal["number", "string"]
    help: str
    choices: Callable[[Choices], tuple[T, ...]]
    unlisted: Callable[[Choices], WrittenIn[T] | None]
    default: Callable[[Choices], T | None]
    write: Callable[[T], Written]
    spelled: Callable[[T], Spelling]

    def read(self, given: object, choices: Choices, accelerator: str) -> Written | FieldError:
        """Return the choice that a value stands for, as `user_options` holds it, or an error.

        Args:
            given: The value that was sent; None if the option was left out.
            choices: The choices with the accelerator.
            accelerator: The accelerator's name for users; empty for none.
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
        offered = [str(self.write(choice)) for choice in listed]
        return f"{problem} {wording.choose(offered, unlisted.hint if unlisted else '')}"


def _nothing_else(_choices: Choices) -> None:
    return None


def _cores(millicores: int) -> int | float:
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
    spelled = [(Size(memory), memory) for memory in allowed.sizes]
    return WrittenIn(
        find=lambda given: next(
            (memory for size, memory in spelled if size.stands_in(given)), None
        ),
        schema={
            "anyOf": [size.schema() for size, _memory in spelled],
            "title": wording.unlisted_name(allowed),
        },
        hint=wording.unlisted_hint(allowed),
    )


GPUS: Option[int] = Option(
    name="gpus",
    type="number",
    help="Number of GPUs; 0 without an accelerator, and only then.",
    choices=lambda choices: choices.counts,
    unlisted=_nothing_else,
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
    spelled=lambda image: Key(image.key, image.display_name),
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
    unlisted=_nothing_else,
    default=lambda choices: choices.default.cpu,
    write=_cores,
    spelled=lambda millicores: Number(_cores(millicores)),
)

OPTIONS: tuple[Option[int] | Option[Image] | Option[Memory], ...] = (GPUS, IMAGE, MEMORY, CPU)
"""All options except the accelerator, on which they depend."""

NAMES = (ACCELERATOR, *(option.name for option in OPTIONS))
