"""What the template draws: plain texts, nothing left to decide or to compute."""

from dataclasses import dataclass

from markupsafe import Markup

MOST_LAMPS = 16
"""With more GPUs than this the figures say more than a row of lamps."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One line of a select.

    Attributes:
        value: What the browser sends.
        label: What the person reads.
        selected: Whether it is chosen.
    """

    value: str
    label: str
    selected: bool


@dataclass(frozen=True, slots=True)
class Field:
    """A select.

    Attributes:
        name: Its name in the form, such as `memory` or `gpus--a100`.
        label: What it asks.
        choices: What there is to choose from.
        error: What was wrong with what was sent; empty for nothing.
    """

    name: str
    label: str
    choices: tuple[Choice, ...]
    error: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """An accelerator to choose, or none.

    Attributes:
        value: Key of the accelerator; empty for none.
        name: Its name for people.
        description: What it is good for; may be empty.
        state: The state's own word, for the style sheet and the icon.
        word: The state in words.
        detail: Its figures; may be empty.
        lamps: One for each GPU, true where it is free; empty where there are none or too many.
        checked: Whether it is chosen.
        fields: What is to be chosen with this one only.
    """

    value: str
    name: str
    description: str
    state: str
    word: str
    detail: str
    lamps: tuple[bool, ...]
    checked: bool
    fields: tuple[Field, ...]


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
class View:
    """The whole form.

    Attributes:
        cards: The accelerators, servers without one last.
        fields: What is to be chosen with each of them alike.
        message: What is told above it all, as safe HTML; empty for nothing.
        alternatives: What would start right now; only with a message.
        notice: What is worth knowing before choosing; may be empty.
        error: What was wrong with the accelerator that was sent; empty for nothing.
    """

    cards: tuple[Card, ...]
    fields: tuple[Field, ...]
    message: Markup
    alternatives: tuple[Button, ...]
    notice: str
    error: str
