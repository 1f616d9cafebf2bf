"""Explains errors in options and names the valid values, in the sender's language.

Each function returns whole sentences as plain text, not yet escaped for HTML.
"""

from collections.abc import Iterable, Sequence

from gpuspawner.kube.quoting import nearest, quote
from gpuspawner.language import N_, all_of, ngettext, one_of, sentences
from gpuspawner.language import gettext as _
from gpuspawner.offers.types import UnlistedImage, UnlistedMemory

_MOST_NAMED = 3
_TYPES = frozenset({N_("a list"), N_("an object"), N_("a very large number")})


_LABELS = {
    "accelerator": N_("GPU"),
    "gpus": N_("Number of GPUs"),
    "image": N_("Image"),
    "memory": N_("Memory"),
    "cpu": N_("CPU"),
}


def label(option: str) -> str:
    """Return an option's label on the form."""
    return _(_LABELS[option])


def quoted(value: object) -> str:
    """Quote a value that was sent, or name its type."""
    text = quote(value)
    return _(text) if text in _TYPES else text


def not_options(value: object, names: Sequence[str]) -> str:
    """Ask for an object with these options instead of the value that was sent."""
    text = _("Send an object with {names}, not {value}.")
    return text.format(names=all_of(names), value=quoted(value))


def unknown_options(unknown: Sequence[object], names: Sequence[str]) -> str:
    """Name options that don't exist, and those that do."""
    named = [quoted(name) for name in unknown[:_MOST_NAMED]]
    if more := len(unknown) - len(named):
        named.append(ngettext("{count} more", "{count} more", more).format(count=more))
    near = nearest(unknown[0], names) if isinstance(unknown[0], str) else ""
    text = sentences(
        ngettext("There is no option {names}.", "There are no options {names}.", len(unknown)),
        _("Did you mean {word}?") if near else "",
        _("The options are {options}."),
    )
    return text.format(names=all_of(named), word=near, options=all_of(names))


def not_offered(value: object, offered: Iterable[str] = ()) -> str:
    """Say that a value isn't offered, with the nearest one that is."""
    near = nearest(value, offered) if isinstance(value, str) else ""
    if near:
        text = _("{value} isn't offered. Did you mean {word}?")
        return text.format(value=quoted(value), word=near)
    return _("{value} isn't offered.").format(value=quoted(value))


def not_offered_with(value: object, accelerator: str) -> str:
    """Say that a value isn't offered with an accelerator, or without one if its name is empty."""
    if not accelerator:
        return _("{value} isn't offered without a GPU.").format(value=quoted(value))
    text = _("{value} isn't offered with {accelerator}.")
    return text.format(value=quoted(value), accelerator=accelerator)


def no_choice_with(accelerator: str) -> str:
    """Say that an option has no values with an accelerator, or without one if its name is empty."""
    if not accelerator:
        return _("This option isn't available without a GPU. Leave it out.")
    text = _("This option isn't available with {accelerator}. Leave it out.")
    return text.format(accelerator=accelerator)


def not_text(value: object) -> str:
    """Say that a value isn't text."""
    return _("{value} isn't text.").format(value=quoted(value))


def not_a_number(value: object) -> str:
    """Say that a value isn't a number."""
    return _("{value} isn't a number.").format(value=quoted(value))


def choose(choices: Sequence[str], hint: str = "") -> str:
    """List the choices, and describe the values that can be entered; either may be empty."""
    if not choices:
        return _("Enter {hint}.").format(hint=hint)
    if not hint:
        return _("Choose {choices}.").format(choices=one_of(choices))
    return _("Choose {choices}, or enter {hint}.").format(choices=one_of(choices), hint=hint)


def choose_accelerator(keys: Iterable[str]) -> str:
    """List the accelerators, and the value for no GPU."""
    return choose([*keys, _("null for no GPU")])


def accelerator_missing(keys: Iterable[str]) -> str:
    """Say that GPUs need an accelerator, and list the accelerators."""
    problem = _("You asked for GPUs, but didn't choose an accelerator.")
    return sentences(problem, choose_accelerator(keys))


def unlisted_name(unlisted: UnlistedImage | UnlistedMemory) -> str:
    """Name the field for values that aren't listed."""
    if unlisted.display_name:
        return unlisted.display_name
    return _("Another image") if isinstance(unlisted, UnlistedImage) else _("Another memory size")


def unlisted_hint(unlisted: UnlistedImage | UnlistedMemory) -> str:
    """Describe the values that aren't listed but can be entered, as a part of a sentence."""
    if isinstance(unlisted, UnlistedMemory):
        text = _("a size from {least} to {most} in steps of {step}")
        least, most = unlisted.sizes[0].text, unlisted.sizes[-1].text
        return text.format(least=least, most=most, step=unlisted.step)
    text = _("an image whose full name matches {expression}")
    return unlisted.message or text.format(expression=unlisted.regex)
