"""The data that the templates draw, with nothing left to decide or compute."""

from pathlib import Path

import msgspec
from markupsafe import Markup

from gpuspawner.offers.types import Accelerator

STATIC = Path(__file__).parent / "static"
"""The folder of the style sheet and the script."""

MOST_LAMPS = 16
"""With more GPUs than this, a row of lamps is hard to read."""


class SelectOption(msgspec.Struct, frozen=True):
    """One line of a select.

    Attributes:
        value: The value that the browser sends.
        label: The choice with its current availability.
        plain: The choice alone.
        amount: How much it requests: bytes, millicores or GPUs; None for an image.
    """

    value: str
    label: str
    selected: bool
    plain: str
    amount: int | None


class Field(msgspec.Struct, frozen=True):
    """A select.

    Attributes:
        name: Such as `memory` or `gpus--a100`.
        error: The error in the value that was sent; empty for none.
    """

    option: str
    name: str
    label: str
    choices: tuple[SelectOption, ...]
    error: str = ""


class TextField(msgspec.Struct, frozen=True):
    """A text field beside a select, for values that aren't listed there.

    Attributes:
        name: Such as `unlisted_image`.
        hint: The allowed values.
    """

    option: str
    name: str
    label: str
    hint: str
    value: str
    error: str


class Card(msgspec.Struct, frozen=True):
    """An accelerator to choose, or no accelerator.

    Attributes:
        value: Key of the accelerator; empty for none.
        name: Its display name.
        sharing: What other servers have of the same GPU; empty for a whole GPU.
        shared: Whether other servers share its memory; the form stresses this.
        state: The state as a constant, for the style sheet and the icon.
        word: The state in words.
        detail: The figures; may be empty.
        lamps: One for each GPU, true if it is free; empty if there are none or too many.
        fields: The fields of this accelerator only.
        error: Why it was refused; may be empty.
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


class Button(msgspec.Struct, frozen=True):
    """A button that starts an alternative to the choices in the fields.

    Attributes:
        value: What it sends, by the name `alternative_button.INSTEAD`.
        label: The server that it starts.
        details: The other choices that come with it; may be empty.
    """

    value: str
    label: str
    details: str = ""


class OwnServer(msgspec.Struct, frozen=True):
    """A running server of the user's own.

    Attributes:
        stop: The address that stops it and comes back to the form; "" if it can't be stopped now.
    """

    name: str
    stop: str


class AboveTheForm(msgspec.Struct, frozen=True):
    """What became of the user's last server, and what policies leave to the user.

    Attributes:
        before: A sentence for each thing that became of it.
        lines: A sentence for each limit.
        servers: The user's servers that take part of a limit.
        withheld: The accelerators that aren't offered to the user and yet shown, and why, in the
            administrator's words, which may be empty.
    """

    before: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    servers: tuple[OwnServer, ...] = ()
    withheld: tuple[tuple[Accelerator, str], ...] = ()


class LiveAddresses(msgspec.Struct, frozen=True):
    """The addresses for a live form, without a host.

    Attributes:
        states: The availability of each accelerator, as JSON.
        decision: Whether choices could start now, as JSON.
        stream: The availability whenever it changes.
        follow: The script that follows the stream, for those of forms.
    """

    style: str
    script: str
    states: str
    decision: str
    stream: str = ""
    follow: str = ""


class LineView(msgspec.Struct, frozen=True):
    """The page of somebody who waits in line.

    Attributes:
        said: The place, as plain text.
        alternatives: What they could have right now instead.
        progress: The address of the events of their start.
        back: The address of the hub's own page of their start.
        live: As that of `View`.
    """

    said: str
    alternatives: tuple[Button, ...]
    progress: str
    back: str
    live: LiveAddresses | None


class View(msgspec.Struct, frozen=True):
    """The whole form, or what is above a form that isn't ours.

    Attributes:
        cards: The accelerators, servers without one last.
        fields: Those that don't depend on the accelerator.
        message: Above the form; empty for none.
        is_refusal: Whether the message is about what was chosen, so that it goes with that.
        is_foretold: As in `OnForm`.
        is_wrong: Whether it is about options of a form that isn't ours, wherever there is room.
        alternatives: Only with a message.
        wait: Describes the button for waiting in line; empty for none.
        wait_for: The refused choices, as `alternative_button.value`; empty if none were sent.
        error: The error in the accelerator that was sent; empty for none.
        live: None for a form that doesn't change.
        usage: None without policies.
    """

    cards: tuple[Card, ...] = ()
    fields: tuple[Field, ...] = ()
    texts: tuple[TextField, ...] = ()
    message: Markup = Markup()
    is_refusal: bool = True
    is_foretold: bool = False
    is_wrong: bool = False
    alternatives: tuple[Button, ...] = ()
    wait: str = ""
    wait_for: str = ""
    notices: tuple[str, ...] = ()
    error: str = ""
    live: LiveAddresses | None = None
    usage: AboveTheForm | None = None
