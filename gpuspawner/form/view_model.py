"""What the template draws: plain texts, nothing left to decide or to compute."""

from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

STATIC = Path(__file__).parent / "static"
"""The folder of the style sheet and the script."""

MOST_LAMPS = 16
"""With more GPUs than this the figures say more than a row of lamps."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One line of a select.

    Attributes:
        value: What the browser sends.
        label: What the person reads.
        selected: Whether it is chosen.
        plain: The label without what is known of it at the moment.
        amount: How much it asks for, in the base unit of its kind; None where that is nothing.
    """

    value: str
    label: str
    selected: bool
    plain: str
    amount: int | None


@dataclass(frozen=True, slots=True)
class Field:
    """A select.

    Attributes:
        option: Name of the option that it asks for.
        name: Its name in the form, such as `memory` or `gpus--a100`.
        label: What it asks.
        choices: What there is to choose from.
        error: What was wrong with what was sent; empty for nothing.
    """

    option: str
    name: str
    label: str
    choices: tuple[Choice, ...]
    error: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A text beside a select, for what is not listed there.

    Attributes:
        option: Name of the option that it stands for.
        name: Its name in the form, such as `unlisted_image`.
        label: What it asks.
        hint: What can be written in.
        value: What is in it.
        error: What was wrong with what was sent; empty for nothing.
    """

    option: str
    name: str
    label: str
    hint: str
    value: str
    error: str


@dataclass(frozen=True, slots=True)
class Card:
    """An accelerator to choose, or none.

    Attributes:
        value: Key of the accelerator; empty for none.
        name: Its name for people.
        description: What it is good for; may be empty.
        sharing: What others have of the same GPU; empty for a whole one.
        shared: Whether others have its memory too, which is not to be overlooked.
        state: The state's own word, for the style sheet and the icon.
        word: The state in words.
        detail: Its figures; may be empty.
        lamps: One for each GPU, true where it is free; empty where there are none or too many.
        checked: Whether it is chosen.
        fields: What is to be chosen with this one only.
        error: Why it cannot be had, if that was tried; may be empty.
    """

    value: str
    name: str
    description: str
    sharing: str
    shared: bool
    state: str
    word: str
    detail: str
    lamps: tuple[bool, ...]
    checked: bool
    fields: tuple[Field, ...]
    error: str


@dataclass(frozen=True, slots=True)
class Button:
    """A button that starts something else than what is chosen in the fields.

    Attributes:
        name: Its name in the form.
        value: What the browser sends.
        label: What it starts.
        details: All that comes with it; may be empty.
    """

    name: str
    value: str
    label: str
    details: str


@dataclass(frozen=True, slots=True)
class Live:
    """Where the hub serves what makes the form live; all addresses without a host.

    Attributes:
        style: The style sheet.
        script: The script.
        states: How it stands with each accelerator, as JSON.
        decision: Whether choices could start now, as JSON.
    """

    style: str
    script: str
    states: str
    decision: str


@dataclass(frozen=True, slots=True)
class View:
    """The whole form.

    Attributes:
        cards: The accelerators, servers without one last.
        fields: What is to be chosen with each of them alike.
        texts: What can be written in, with each of them alike.
        message: What is told above it all, as safe HTML; empty for nothing.
        alternatives: What would start right now; only with a message.
        notices: What is worth knowing before choosing.
        error: What was wrong with the accelerator that was sent; empty for nothing.
        live: What makes it live; None for a form that stays as it is.
    """

    cards: tuple[Card, ...]
    fields: tuple[Field, ...]
    texts: tuple[Text, ...]
    message: Markup
    alternatives: tuple[Button, ...]
    notices: tuple[str, ...]
    error: str
    live: Live | None
