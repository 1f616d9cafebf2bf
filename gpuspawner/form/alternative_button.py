"""The button of an alternative: one field that stands for all choices of the alternative.

A browser sends the value of the pressed button together with all fields. The value holds the
choices as a query, and they replace the fields' own.
"""

from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode

from gpuspawner.options import ACCELERATOR, NAMES, OF, GPURequest, user_options
from gpuspawner.options.parsing import UNLISTED

INSTEAD = "instead"
"""The name of the buttons."""


def value(request: GPURequest) -> str:
    """Return the value of a request's button."""
    chosen = {name: it for name, it in user_options(request).items() if it is not None}
    return urlencode({ACCELERATOR: "", **chosen})


def pressed(form: Mapping[str, list[object]]) -> dict[str, list[object]]:
    """Return a form's fields; if an alternative's button was pressed, with its choices.

    The result is as untrusted as the form. Fields that aren't our options stay.
    """
    buttons = form.get(INSTEAD)
    if not buttons:
        return dict(form)
    fields = {
        name: values
        for name, values in form.items()
        if name != INSTEAD and name.partition(OF)[0].removeprefix(UNLISTED) not in NAMES
    }
    for name, chosen in parse_qsl(str(buttons[-1]), keep_blank_values=True):
        if name in NAMES:
            fields[name] = [chosen]
    return fields
