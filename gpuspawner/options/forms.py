"""Reads options from the fields of a form, and from a query."""

import re
from collections.abc import Mapping, Sequence

from gpuspawner.offers.keys import same_key
from gpuspawner.options.declared import ACCELERATOR, NAMES, OPTIONS

OF = "--"
"""In a form, `gpus--a100` is the option `gpus` if the accelerator `a100` is chosen."""

UNLISTED = "unlisted_"
"""In a form, `unlisted_image` is the text field beside the list `image`, and takes precedence."""

_WHOLE = re.compile(r"[0-9]{1,9}")
_DECIMAL = re.compile(r"[0-9]{1,9}\.[0-9]{1,3}")
_NUMBERS = frozenset(option.name for option in OPTIONS if option.type == "number")


def from_form(form: Mapping[str, Sequence[object]]) -> dict[str, object]:
    """Convert the fields of a form or query, as JupyterHub provides them, to options for `parse`.

    Only here are numbers texts. A field such as `gpus--a100` counts if its accelerator is the
    chosen one. JupyterHub's own `_xsrf` is left out.
    """
    fields = {name: _single(values) for name, values in form.items() if name != "_xsrf"}
    accelerator = fields.get(ACCELERATOR)
    raw: dict[str, object] = {}
    for name, value in fields.items():
        option, of, key = name.partition(OF)
        if not of or option not in NAMES:
            raw.setdefault(name, _number(name, value))
        elif isinstance(accelerator, str) and same_key(key) == same_key(accelerator):
            raw[option] = _number(option, value)
    for option in (it.name for it in OPTIONS):
        written = raw.pop(f"{UNLISTED}{option}", "")
        if written != "":
            raw[option] = written.strip() if isinstance(written, str) else written
    return {name: None if value == "" else value for name, value in raw.items()}


def _single(values: Sequence[object]) -> object:
    return values[0] if len(values) == 1 else list(values)


def _number(name: str, value: object) -> object:
    if name not in _NUMBERS or not isinstance(value, str):
        return value
    if _WHOLE.fullmatch(value):
        return int(value)
    return float(value) if _DECIMAL.fullmatch(value) else value
