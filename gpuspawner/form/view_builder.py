"""Builds the form's questions and its view from offers, availability, and the user's choices.

Without a script, a form can't make one field depend on another. So if the choices of a field
depend on the accelerator, each accelerator's card has the field, with a name such as `gpus--a100`.
The other fields are below the cards, once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec
from markupsafe import Markup
from msgspec.structs import replace

from gpuspawner.form import alternative_button
from gpuspawner.form.addresses import stop
from gpuspawner.form.view_model import (
    MOST_LAMPS,
    AboveTheForm,
    Button,
    Card,
    Field,
    OwnServer,
    SelectOption,
    TextField,
    View,
)
from gpuspawner.language import gettext as _
from gpuspawner.language import sentence, sentences
from gpuspawner.messages import OnForm, button, state_text
from gpuspawner.messages.availability import sharing
from gpuspawner.messages.words import cores, memory, no_download
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.options import ACCELERATOR, CPU, GPUS, IMAGE, MEMORY, Option, Written
from gpuspawner.offers.shapes import Memory
from gpuspawner.offers.texts import LONGEST
from gpuspawner.offers.types import Accelerator, Choices, Image
from gpuspawner.offers.user_options import OF, UNLISTED, GPURequest, fall_back, parse, user_options
from gpuspawner.offers.wording import label, unlisted_hint, unlisted_name
from gpuspawner.preflight.alternatives import request_for
from gpuspawner.preflight.availability import Availability, State
from gpuspawner.preflight.decision import Alternative, ResourceRoom

# The questions of the form: an option, its label, and its choices in words.

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


REMARKS = not_free, over_limit, never
"""What the script may have to say of a choice, too."""


# The view.


def buttons(told: OnForm, offers: Offers) -> tuple[Button, ...]:
    """Return a button for each alternative to a choice of accelerators."""

    def of(alternative: Alternative) -> Button:
        words = button(alternative)
        sent = alternative_button.value(request_for(alternative.grant, offers))
        return Button(sent, words.label, " · ".join(words.details))

    return tuple(map(of, told.alternatives))


def profile_buttons(told: OnForm) -> tuple[Button, ...]:
    """Return a button for each alternative to a profile."""
    return tuple(
        Button(alternative_button.profile_value(it.options), it.label) for it in told.profiles
    )


def above_the_form(
    spawner: Any,
    before: Sequence[str],
    lines: Sequence[str],
    servers: Iterable[str],
    withheld: Sequence[tuple[Accelerator, str]],
) -> AboveTheForm | None:
    """Return what became of the last server and what policies leave; None if nothing is to be said.

    Args:
        spawner: The spawner whose form it is.
        before: A sentence for each thing that became of its last server.
        lines: A sentence for each limit.
        servers: The names of the user's servers that take part of a limit.
        withheld: The accelerators that policies withhold and yet show, and why.
    """
    if not (before or lines or withheld):
        return None
    own = tuple(_own(spawner, name) for name in servers)
    return AboveTheForm(tuple(before), tuple(lines), own, tuple(withheld))


def _own(spawner: Any, name: str) -> OwnServer:
    """Describe a server; a user can't stop one that starts or stops, or that the hub lost."""
    running = spawner.user.spawners.get(name)
    can_stop = running is not None and running.ready
    shown = name or _("your default server")
    return OwnServer(shown, stop(spawner, name) if can_stop else "")


class ViewBuilder:
    """Builds one view; the arguments are those of `render`."""

    def __init__(
        self,
        offers: Offers,
        rows: Sequence[Availability],
        chosen: object,
        told: OnForm | None = None,
    ) -> None:
        self._offers = offers
        self._rows = rows
        self._told = told
        self._kept, _gone = fall_back(chosen, offers)
        self._chosen = user_options(self._kept)
        self._understood = isinstance(parse(chosen, offers), GPURequest)
        everything = [offers.choices(row.accelerator) for row in rows]
        self._written = self._written_in(chosen)
        questions: tuple[AnyQuestion, ...] = (IMAGES, MEMORIES, CPUS)
        self._own = [it for it in questions if _differs(it, everything)]
        self._common = [it for it in questions if it not in self._own]

    def view(self) -> View:
        """Build the view, without what depends on more than these arguments."""
        told, everywhere = self._told, self._offers.choices(None)
        return View(
            cards=tuple(self._card(row) for row in self._rows),
            fields=self._fields(_marked(self._common, self._rows), everywhere, self._chosen),
            texts=tuple(self._texts(everywhere)),
            message=told.message.html if told else Markup(),
            is_refusal=told is not None and told.is_refusal,
            is_foretold=told is not None and told.is_foretold,
            alternatives=buttons(told, self._offers) if told else (),
            wait=told.wait if told else "",
            wait_for=alternative_button.value(self._kept),
            error="" if self._understood else self._error(ACCELERATOR),
        )

    def _card(self, row: Availability) -> Card:
        accelerator = row.accelerator
        choices = self._offers.choices(accelerator)
        key = accelerator.key if accelerator else None
        checked = key == self._chosen[ACCELERATOR]
        chosen = self._chosen if checked else {}
        own = _marked(self._own, [row])
        if accelerator is not None:
            own.insert(0, counts(row))
        words = state_text(row)
        return Card(
            value=key or "",
            name=accelerator.display_name if accelerator else _("No GPU"),
            description=accelerator.description if accelerator else _("CPU and memory only"),
            sharing=sharing(accelerator) if accelerator else "",
            shared=accelerator is not None and accelerator.is_shared,
            state=row.state.value,
            word=words.word,
            detail=words.detail,
            lamps=lamps(row.gpus),
            checked=checked,
            fields=self._fields(own, choices, chosen, of=f"{OF}{key or ''}"),
            error=self._error(ACCELERATOR) if checked and self._understood else "",
        )

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
            wanted = chosen.get(name) if chosen else question.taken(choices)
            if drawn := question.choices(choices, wanted):
                error = self._error(name) if chosen and name not in self._written else ""
                fields.append(Field(name, f"{name}{of}", question.label, drawn, error))
        return tuple(fields)

    def _texts(self, choices: Choices) -> list[TextField]:
        """Return the fields for values that aren't listed; accelerators don't affect them."""
        image, size = choices.unlisted_image, choices.unlisted_memory
        unneeded = _("Leave it empty to use the list.")
        return [
            TextField(
                option=name,
                name=f"{UNLISTED}{name}",
                label=unlisted_name(unlisted),
                hint=sentences(sentence(unlisted_hint(unlisted)), unneeded),
                value=self._written.get(name, ""),
                error=self._error(name) if name in self._written else "",
            )
            for name, unlisted in ((IMAGE.name, image), (MEMORY.name, size))
            if unlisted is not None
        ]

    def _written_in(self, sent: object) -> dict[str, str]:
        """Return the entered values; a value that was just refused stays, to be corrected."""
        accelerator = self._offers.accelerators.get(str(self._chosen[ACCELERATOR]))
        choices = self._offers.choices(accelerator)
        allowed = {IMAGE.name: choices.unlisted_image, MEMORY.name: choices.unlisted_memory}
        listed = {it.value for ask in (IMAGES, MEMORIES) for it in ask.choices(choices, None)}
        given = sent if isinstance(sent, Mapping) else {}
        written = {
            name: given.get(name) if self._error(name) else self._chosen[name]
            for name, unlisted in allowed.items()
            if unlisted
        }
        return {
            name: value[:LONGEST]
            for name, value in written.items()
            if isinstance(value, str) and (self._error(name) or value not in listed)
        }

    def _error(self, name: str) -> str:
        errors = self._told.errors if self._told else ()
        return sentences(*(sentence(error.text) for error in errors if error.field == name))


def lamps(gpus: ResourceRoom | None) -> tuple[bool, ...]:
    """Return a lamp for each GPU, lit if it is free; none if there are too many GPUs."""
    if gpus is None or gpus.total > MOST_LAMPS:
        return ()
    return tuple(number < gpus.free for number in range(gpus.total))


def _marked(questions: Sequence[AnyQuestion], rows: Sequence[Availability]) -> list[AnyQuestion]:
    """Let the question for the image tell which ones need no download."""
    return [images(rows) if question is IMAGES else question for question in questions]


def _differs(question: AnyQuestion, everything: Sequence[Choices]) -> bool:
    return len({(question.option.choices(it), question.taken(it)) for it in everything}) > 1


def notice(rows: Sequence[Availability]) -> str:
    """Say why there is no GPU to choose from among what is on offer to the user; "" if there is."""
    if any(row.accelerator is not None for row in rows):
        return ""
    states = {row.state for row in rows}
    if State.READING in states:
        return _("The hub is still reading the cluster. Reload this page in a moment.")
    if State.UNKNOWN in states:
        return _("We can't check which GPUs there are right now.")
    return _("There are no GPUs to choose from right now.")
