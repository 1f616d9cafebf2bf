"""Facts to the view of the form.

Without a script a form cannot make one field depend on another. So what differs from accelerator
to accelerator, as counts do, stands in each accelerator's card, with its own choices and a name
such as `gpus--a100`; what is the same for all stands once, below.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from markupsafe import Markup

from gpuspawner.availability import Availability, State
from gpuspawner.form import instead
from gpuspawner.form.view import MOST_LAMPS, Button, Card, Choice, Field, View
from gpuspawner.messages import OnForm, button, standing
from gpuspawner.messages.corrections import sentence
from gpuspawner.messages.words import cores, memory
from gpuspawner.offers import Choices, Image, Memory, Offers
from gpuspawner.options import (
    ACCELERATOR,
    CPU,
    GPUS,
    IMAGE,
    MEMORY,
    OF,
    FieldError,
    Option,
    Written,
    keep,
    user_options,
)
from gpuspawner.preflight.alternatives import asked_for
from gpuspawner.preflight.decision import Alternative, Room

T = TypeVar("T")


@dataclass(frozen=True)
class Question(Generic[T]):
    """An option as the form asks for it.

    Attributes:
        option: The option.
        label: What is asked.
        say: A choice in words.
    """

    option: Option[T]
    label: str
    say: Callable[[T], str]

    def lines(self, choices: Choices) -> tuple[tuple[Written, str], ...]:
        """The choices: what is sent, and what is read."""
        return tuple((self.option.write(it), self.say(it)) for it in self.option.choices(choices))

    def taken(self, choices: Choices) -> Written:
        """What is chosen before anybody has chosen."""
        taken = self.option.default(choices)
        return None if taken is None else self.option.write(taken)


AnyQuestion: TypeAlias = Question[int] | Question[Image] | Question[Memory]

IMAGES: Question[Image] = Question(IMAGE, "Image", lambda image: image.display_name)
MEMORIES: Question[Memory] = Question(MEMORY, "Memory", lambda size: memory(size.bytes))
CPUS: Question[int] = Question(CPU, "CPU", cores)


def build(
    offers: Offers,
    rows: Sequence[Availability],
    chosen: object = None,
    told: OnForm | None = None,
) -> View:
    """Make the view of the form.

    Args:
        offers: What is offered.
        rows: How it stands with each accelerator, and with none.
        chosen: Options to begin with, hostile and perhaps of another time.
        told: Why they did not start; None where nothing was tried.
    """
    return _Builder(offers, rows, chosen, told.errors if told else ()).view(told)


class _Builder:
    """Holds what each part of one view needs."""

    def __init__(
        self,
        offers: Offers,
        rows: Sequence[Availability],
        chosen: object,
        errors: Sequence[FieldError],
    ) -> None:
        self._offers = offers
        self._rows = rows
        self._chosen = user_options(keep(chosen, offers))
        self._errors = errors
        everything = [offers.choices(row.accelerator) for row in rows]
        questions: tuple[AnyQuestion, ...] = (IMAGES, MEMORIES, CPUS)
        self._own = [it for it in questions if _differs(it, everything)]
        self._common = [it for it in questions if it not in self._own]

    def view(self, told: OnForm | None) -> View:
        everywhere = self._offers.choices(None)
        return View(
            cards=tuple(self._card(row) for row in self._rows),
            fields=self._fields(self._common, everywhere, self._chosen),
            message=told.message.html if told else Markup(),
            alternatives=tuple(self._alternative(it) for it in told.alternatives) if told else (),
            notice=_notice(self._rows),
            error=self._error(ACCELERATOR),
        )

    def _card(self, row: Availability) -> Card:
        choices = self._offers.choices(row.accelerator)
        key = row.accelerator.key if row.accelerator else None
        checked = key == self._chosen[ACCELERATOR]
        chosen = self._chosen if checked else {}
        own: list[AnyQuestion] = [*self._own]
        if row.accelerator is not None:
            own.insert(0, Question(GPUS, "Number of GPUs", _count(row)))
        words = standing(row)
        return Card(
            value=key or "",
            name=row.accelerator.display_name if row.accelerator else "No GPU",
            description=row.accelerator.description if row.accelerator else "CPU and memory only",
            state=row.state.value,
            word=words.word,
            detail=words.detail,
            lamps=_lamps(row.gpus),
            checked=checked,
            fields=self._fields(own, choices, chosen, of=f"{OF}{key or ''}"),
        )

    def _alternative(self, alternative: Alternative) -> Button:
        words = button(alternative)
        sent = instead.value(asked_for(alternative.grant, self._offers))
        return Button(instead.INSTEAD, sent, words.label, " · ".join(words.details))

    def _fields(
        self,
        questions: Sequence[AnyQuestion],
        choices: Choices,
        chosen: Mapping[str, Written],
        of: str = "",
    ) -> tuple[Field, ...]:
        fields = []
        for question in questions:
            name = question.option.name
            lines = question.lines(choices)
            wanted = chosen.get(name) if chosen else question.taken(choices)
            if lines:
                error = self._error(name) if chosen else ""
                drawn = tuple(Choice(str(sent), text, sent == wanted) for sent, text in lines)
                fields.append(Field(f"{name}{of}", question.label, drawn, error))
        return tuple(fields)

    def _error(self, name: str) -> str:
        return " ".join(sentence(error.text) for error in self._errors if error.field == name)


def _differs(question: AnyQuestion, everything: Sequence[Choices]) -> bool:
    return len({(question.lines(it), question.taken(it)) for it in everything}) > 1


def _count(row: Availability) -> Callable[[int], str]:
    """A count in words, with what is known of it; a growing pool can yet bring what is not free."""
    most = row.gpus.most_free if row.gpus and row.state is not State.CAN_SCALE_UP else None
    return lambda count: str(count) if most is None or count <= most else f"{count} (not free now)"


def _lamps(gpus: Room | None) -> tuple[bool, ...]:
    if gpus is None or gpus.total > MOST_LAMPS:
        return ()
    return tuple(number < gpus.free for number in range(gpus.total))


def _notice(rows: Sequence[Availability]) -> str:
    """What to say where no accelerator is on offer; none configured, and none discovered yet."""
    if any(row.accelerator is not None for row in rows):
        return ""
    states = {row.state for row in rows}
    if State.READING in states:
        return "The cluster is still being read. Load this page again in a moment to see its GPUs."
    if State.UNKNOWN in states:
        return "Which GPUs there are cannot be told right now."
    return "There is no GPU to choose here at the moment."
