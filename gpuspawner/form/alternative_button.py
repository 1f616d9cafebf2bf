"""The button of an alternative: one field that stands for all the choices that it starts.

A button sends its own value with the whole form around it. So it carries the choices as a query,
and where one was pressed they count in place of the form's own.
"""

from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode

from gpuspawner.options import ACCELERATOR, NAMES, OF, GPURequest, user_options
from gpuspawner.options.forms import UNLISTED

INSTEAD = "instead"
"""The name of the buttons."""


def value(request: GPURequest) -> str:
    """What the button of a request sends."""
    chosen = {name: it for name, it in user_options(request).items() if it is not None}
    return urlencode({ACCELERATOR: "", **chosen})


def pressed(form: Mapping[str, list[object]]) -> dict[str, list[object]]:
    """The fields of a form, with the choices of the button that was pressed, if it was one.

    What comes back is as hostile as what came; fields that are no choices of ours stay.
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
