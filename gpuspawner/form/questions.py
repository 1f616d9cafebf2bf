"""The options as the form asks for them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from gpuspawner.availability import Availability, State
from gpuspawner.language import gettext as _
from gpuspawner.messages.words import cores, memory
from gpuspawner.offers import Choices, Image, Memory
from gpuspawner.options import CPU, GPUS, IMAGE, MEMORY, Option, Written

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Line:
    """A choice.

    Attributes:
        sent: What is sent.
        plain: The choice in words.
        told: The same with what is known of it at the moment.
        amount: How much it asks for: bytes, millicores or GPUs; None for what has no amount.
    """

    sent: Written
    plain: str
    told: str
    amount: int | None


@dataclass(frozen=True)
class Question(Generic[T]):
    """An option as the form asks for it.

    Attributes:
        option: The option.
        asked: What is asked, to be translated.
        say: A choice in words.
        amount: How much a choice asks for; None for what has no amount.
        remark: A choice in words with what is known of it at the moment.
    """

    option: Option[T]
    asked: str
    say: Callable[[T], str]
    amount: Callable[[T], int | None]
    remark: Callable[[T, str], str] = lambda _choice, plain: plain

    @property
    def label(self) -> str:
        """What is asked."""
        return _(self.asked)

    def lines(self, choices: Choices) -> tuple[Line, ...]:
        """The choices."""
        return tuple(self._line(it) for it in self.option.choices(choices))

    def taken(self, choices: Choices) -> Written:
        """What is chosen before anybody has chosen."""
        taken = self.option.default(choices)
        return None if taken is None else self.option.write(taken)

    def _line(self, choice: T) -> Line:
        plain = self.say(choice)
        sent = self.option.write(choice)
        return Line(sent, plain, self.remark(choice, plain), self.amount(choice))


AnyQuestion: TypeAlias = Question[int] | Question[Image] | Question[Memory]


def N_(text: str) -> str:  # noqa: N802, the usual name of a mark for what is translated later
    """Mark a text for the catalogues."""
    return text


IMAGES: Question[Image] = Question(
    IMAGE, N_("Image"), lambda image: image.display_name, lambda _image: None
)
MEMORIES: Question[Memory] = Question(
    MEMORY, N_("Memory"), lambda size: memory(size.bytes), lambda size: size.bytes
)
CPUS: Question[int] = Question(CPU, N_("CPU"), cores, lambda millicores: millicores)


def counts(row: Availability) -> Question[int]:
    """How many GPUs of an accelerator; a growing pool can yet bring what is not free."""
    most = row.gpus.most_free if row.gpus and row.state is not State.CAN_SCALE_UP else None

    def remark(count: int, plain: str) -> str:
        return plain if most is None or count <= most else not_free(plain)

    return Question(GPUS, N_("Number of GPUs"), str, lambda count: count, remark)


def not_free(choice: str) -> str:
    """A choice that nothing is free for at the moment."""
    return _("{choice} (not free now)").format(choice=choice)


def never(choice: str) -> str:
    """A choice that no machine has together with the other choices."""
    return _("{choice} (no machine has it)").format(choice=choice)
