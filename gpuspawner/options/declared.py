"""The options, each declared once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from gpuspawner.offers import Choices, Image, Memory
from gpuspawner.offers.references import LONGEST, REFERENCE, whole
from gpuspawner.options.request import FieldError, Written
from gpuspawner.options.spelling import Key, Number, Schema, Size, Spelling
from gpuspawner.quoting import listing, quote

T = TypeVar("T")

ACCELERATOR = "accelerator"
ABOUT_ACCELERATOR = "Key of an accelerator on offer; null for a server without a GPU."


@dataclass(frozen=True, slots=True)
class WrittenIn(Generic[T]):
    """Choices that are on no list.

    Attributes:
        find: The choice that a value stands for; None for none.
        schema: What accepts exactly the values that stand for one.
        hint: What can be written in, in words.
    """

    find: Callable[[object], T | None]
    schema: Schema
    hint: str


@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """One choice among those that come with an accelerator.

    Attributes:
        name: Its name in form, query, REST body and `user_options`.
        type: Which JSON values stand for it.
        help: What it is, in a sentence.
        choices: What is listed to choose from.
        unlisted: What else may be written in; None for nothing.
        default: What is taken when it is left out.
        write: A choice as it stands in `user_options`.
        spelled: How a listed choice can be written.
    """

    name: str
    type: Literal["number", "string"]
    help: str
    choices: Callable[[Choices], tuple[T, ...]]
    unlisted: Callable[[Choices], WrittenIn[T] | None]
    default: Callable[[Choices], T | None]
    write: Callable[[T], Written]
    spelled: Callable[[T], Spelling]

    def read(self, given: object, choices: Choices, company: str) -> Written | FieldError:
        """The choice that a value stands for, as written, or why there is none.

        Args:
            given: What was sent; None stands for left out.
            choices: What can be chosen.
            company: With what, for the sentence: `with NVIDIA A100`.
        """
        found = self.default(choices) if given is None else self._find(given, choices)
        if found is not None:
            return self.write(found)
        return None if given is None else FieldError(self.name, self._why(given, choices, company))

    def schema(self, choices: Choices) -> Schema:
        """What accepts exactly the values that `read` takes, null for left out among them."""
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

    def _why(self, given: object, choices: Choices, company: str) -> str:
        listed, unlisted = self.choices(choices), self.unlisted(choices)
        ways = []
        if listed:
            ways.append(f"choose {listing(str(self.write(choice)) for choice in listed)}")
        if unlisted:
            ways.append(f"write in {unlisted.hint}")
        if not ways:
            return f"there is no choice of {self.name} {company}; leave it out"
        kinds = {"number": (int, float), "string": (str,)}[self.type]
        is_kind = isinstance(given, kinds) and not isinstance(given, bool)
        noun = {"number": "a number", "string": "text"}[self.type]
        problem = f"not on offer {company}" if is_kind else f"not {noun}"
        return f"{quote(given)} is {problem}; {', or '.join(ways)}"


def _nothing_else(_: Choices) -> None:
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
            "title": allowed.display_name,
        },
        hint=allowed.message,
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
        schema={"anyOf": [size.schema() for size, _ in spelled], "title": allowed.display_name},
        hint=allowed.message,
    )


GPUS: Option[int] = Option(
    name="gpus",
    type="number",
    help="How many GPUs; 0 exactly where there is no accelerator.",
    choices=lambda choices: choices.counts,
    unlisted=_nothing_else,
    default=lambda choices: choices.default.gpus,
    write=lambda count: count,
    spelled=Number,
)
IMAGE: Option[Image] = Option(
    name="image",
    type="string",
    help="Key of an image that goes with the accelerator.",
    choices=lambda choices: choices.images,
    unlisted=_images_written_in,
    default=lambda choices: choices.image(choices.default.image or ""),
    write=lambda image: image.key,
    spelled=lambda image: Key(image.key, image.display_name),
)
MEMORY: Option[Memory] = Option(
    name="memory",
    type="string",
    help="A size of memory, such as 16Gi.",
    choices=lambda choices: choices.memory,
    unlisted=_sizes_written_in,
    default=lambda choices: choices.default.memory,
    write=lambda memory: memory.text,
    spelled=Size,
)
CPU: Option[int] = Option(
    name="cpu",
    type="number",
    help="A number of CPU cores.",
    choices=lambda choices: choices.cpu,
    unlisted=_nothing_else,
    default=lambda choices: choices.default.cpu,
    write=_cores,
    spelled=lambda millicores: Number(_cores(millicores)),
)

OPTIONS: tuple[Option[int] | Option[Image] | Option[Memory], ...] = (GPUS, IMAGE, MEMORY, CPU)
"""All options but the accelerator, on which they depend."""

NAMES = (ACCELERATOR, *(option.name for option in OPTIONS))
