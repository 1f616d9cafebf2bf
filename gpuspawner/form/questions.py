"""The form's questions: an option, its label, and its choices in words."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from gpuspawner.availability import Availability, State
from gpuspawner.language import gettext as _
from gpuspawner.messages.words import cores, memory
from gpuspawner.offers import Choices, Image, Memory
from gpuspawner.options import CPU, GPUS, IMAGE, MEMORY, Option, Written
from gpuspawner.options.wording import label

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Line:
    """A choice.

    Attributes:
        sent: The value that the browser sends.
        plain: The choice in words.
        label: The same with its current availability.
        amount: How much it requests: bytes, millicores or GPUs; None for an image.
    """

    sent: Written
    plain: str
    label: str
    amount: int | None


@dataclass(frozen=True)
class Question(Generic[T]):
    """A question of the form.

    Attributes:
        option: The option that it asks for.
        say: Returns a choice in words.
        amount: Returns how much a choice requests; None for an image.
        remark: Returns a choice in words with its current availability.
    """

    option: Option[T]
    say: Callable[[T], str]
    amount: Callable[[T], int | None]
    remark: Callable[[T, str], str] = lambda _choice, plain: plain

    @property
    def label(self) -> str:
        """The label in the language of the current request."""
        return label(self.option.name)

    def lines(self, choices: Choices) -> tuple[Line, ...]:
        """Return the choices."""
        return tuple(self._line(it) for it in self.option.choices(choices))

    def taken(self, choices: Choices) -> Written:
        """Return the default choice."""
        taken = self.option.default(choices)
        return None if taken is None else self.option.write(taken)

    def _line(self, choice: T) -> Line:
        plain = self.say(choice)
        sent = self.option.write(choice)
        return Line(sent, plain, self.remark(choice, plain), self.amount(choice))


AnyQuestion: TypeAlias = Question[int] | Question[Image] | Question[Memory]


IMAGES: Question[Image] = Question(IMAGE, lambda image: image.display_name, lambda _image: None)
MEMORIES: Question[Memory] = Question(
    MEMORY, lambda size: memory(size.bytes), lambda size: size.bytes
)
CPUS: Question[int] = Question(CPU, cores, lambda millicores: millicores)


def counts(row: Availability) -> Question[int]:
    """Ask for the number of GPUs. If the pool can grow, no number is marked as not free."""
    most = row.gpus.most_free if row.gpus and row.state is not State.CAN_SCALE_UP else None

    def remark(count: int, plain: str) -> str:
        return plain if most is None or count <= most else not_free(plain)

    return Question(GPUS, str, lambda count: count, remark)


def not_free(choice: str) -> str:
    """Mark a choice as not free right now."""
    return _("{choice} (not free now)").format(choice=choice)


def never(choice: str) -> str:
    """Mark a choice that no machine has together with the other choices."""
    return _("{choice} (no machine has it)").format(choice=choice)
