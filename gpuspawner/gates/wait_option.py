"""The wish to wait in line, as options, forms, queries and the JSON Schema have it."""

from collections.abc import Mapping
from typing import Any

from gpuspawner.kube.quoting import quote
from gpuspawner.language import gettext as _
from gpuspawner.offers.options import FieldError
from gpuspawner.reservations.place_in_line import OPTION, Wish
from gpuspawner.start.refusal import invalid

EVEN_IF_AWAY = "wait_even_if_away"
"""The name of the box beside the form's button."""
_NO = frozenset({"", "0", "false", "no"})
_WISHES = (
    (None, Wish.NOT),
    (False, Wish.NOT),
    (True, Wish.ANYWAY),
    (Wish.ANYWAY.value, Wish.ANYWAY),
    (Wish.HERE.value, Wish.HERE),
)


def split(options: object, line: object | None) -> tuple[object, Wish]:
    """Return options without the wish to wait in line, and that wish.

    *line* is the hub's, or its rules. Without one (None), there is no such option.

    Raises:
        Refusal: It is none of the values that the option has.
    """
    if line is None or not isinstance(options, Mapping) or OPTION not in options:
        return options, Wish.NOT
    given = options[OPTION]
    for value, wish in _WISHES:
        if type(given) is type(value) and given == value:
            return {name: it for name, it in options.items() if name != OPTION}, wish
    text = _('{value} isn\'t one of true, false, "anyway" and "here".').format(value=quote(given))
    raise invalid((FieldError(OPTION, text),))


def pressed(fields: Mapping[str, list[Any]]) -> Wish:
    """Return the wish that a form or a query has, whose values are texts."""
    if str((fields.get(OPTION) or [""])[-1]).lower() in _NO:
        return Wish.NOT
    return Wish.ANYWAY if EVEN_IF_AWAY in fields else Wish.HERE


def without(options: object, line: object | None) -> object:
    """Return the options of a form or a query without its wish, which `pressed` has read."""
    if line is None or not isinstance(options, Mapping):
        return options
    return {name: it for name, it in options.items() if name not in (OPTION, EVEN_IF_AWAY)}


def in_schema(schema: dict[str, Any], line: object | None) -> dict[str, Any]:
    """Return the JSON Schema of a server's options, with this one if there is a line."""
    if line is None:
        return schema
    values = [value for value, _wish in _WISHES]
    about = {"enum": values, "description": "Whether to wait in line if there is no room."}
    return {**schema, "properties": {**schema["properties"], OPTION: about}}
