"""The form's questions: an option, its label, and its choices in words."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from gpuspawner.form.view_model import SelectOption
from gpuspawner.language import gettext as _
from gpuspawner.messages.words import cores, memory, no_download
from gpuspawner.offers.options import CPU, GPUS, IMAGE, MEMORY, Option, Written
from gpuspawner.offers.shapes import Memory
from gpuspawner.offers.types import Choices, Image
from gpuspawner.offers.wording import label
from gpuspawner.preflight.availability import Availability, State

T = TypeVar("T")


class Question(msgspec.Struct, Generic[T], frozen=True):
    """A question of the form.

    Attributes:
        say: Returns a choice in words.
        amount: As `SelectOption.amount`.
        remark: Adds its current availability to a choice in words.
    """

    option: Option[T]
    say: Callable[[T], str]
    amount: Callable[[T], int | None]
    remark: Callable[[T, str], str] = lambda _choice, plain: plain

    @property
    def label(self) -> str:
        """The label in the language of the current request."""
        return label(self.option.name)

    def choices(self, offered: Choices, wanted: Written) -> tuple[SelectOption, ...]:
        """Return the choices, and select the wanted one."""
        return tuple(self._choice(it, wanted) for it in self.option.choices(offered))

    def taken(self, choices: Choices) -> Written:
        """Return the default choice."""
        taken = self.option.default(choices)
        return None if taken is None else self.option.write(taken)

    def _choice(self, choice: T, wanted: Written) -> SelectOption:
        plain, sent = self.say(choice), self.option.write(choice)
        label = self.remark(choice, plain)
        return SelectOption(str(sent), label, sent == wanted, plain, self.amount(choice))


AnyQuestion: TypeAlias = Question[int] | Question[Image] | Question[Memory]


IMAGES: Question[Image] = Question(IMAGE, lambda image: image.display_name, lambda _image: None)
MEMORIES: Question[Memory] = Question(
    MEMORY, lambda size: memory(size.bytes), lambda size: size.bytes
)
CPUS: Question[int] = Question(CPU, cores, lambda millicores: millicores)


STARTS = (State.FREE, State.CAN_SCALE_UP, State.MAY_SCALE_UP, State.READING, State.UNKNOWN)
"""With these states, the hub would create a pod; follow.js has the same."""


def images(rows: Sequence[Availability]) -> Question[Image]:
    """Ask for the image; mark those that need no download with any accelerator that starts."""
    starting = [row.at_hand for row in rows if row.state in STARTS]
    at_hand = frozenset[str]().union(*starting).intersection(*starting)

    def remark(image: Image, plain: str) -> str:
        return no_download(plain) if image.key in at_hand else plain

    return replace(IMAGES, remark=remark)


def counts(row: Availability) -> Question[int]:
    """Ask for the number of GPUs. If the pool can grow, no number is marked as not free."""
    left = row.left
    most = row.gpus.most_free if row.gpus and row.scale_up is None else None

    def remark(count: int, plain: str) -> str:
        if left is not None and count > left:
            return over_limit(plain)
        return plain if most is None or count <= most else not_free(plain)

    return Question(GPUS, str, lambda count: count, remark)


def not_free(choice: str) -> str:
    """Mark a choice as not free right now."""
    return _("{choice} (not free now)").format(choice=choice)


def over_limit(choice: str) -> str:
    """Mark a choice of which policies leave less to the user right now."""
    return _("{choice} (more than is left for you)").format(choice=choice)


def never(choice: str) -> str:
    """Mark a choice that no machine has together with the other choices."""
    return _("{choice} (no machine has it)").format(choice=choice)
