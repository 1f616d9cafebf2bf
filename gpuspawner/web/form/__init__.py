"""The spawn form: fields for the hub's own `<form>`, rendered on the server."""

from gpuspawner.web.form.alternative_button import pressed
from gpuspawner.web.form.render import (
    buttons_instead,
    render,
    render_line,
    render_refusal,
    render_usage,
)
from gpuspawner.web.form.view_model import STATIC, LineView, Live, OwnServer, Usage, WithheldCard

__all__ = [
    "STATIC",
    "LineView",
    "Live",
    "OwnServer",
    "Usage",
    "WithheldCard",
    "buttons_instead",
    "pressed",
    "render",
    "render_line",
    "render_refusal",
    "render_usage",
]
