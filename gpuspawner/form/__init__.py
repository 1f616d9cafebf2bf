"""The spawn form: fields for the hub's own `<form>`, rendered on the server."""

from gpuspawner.form.alternative_button import pressed
from gpuspawner.form.render import render, render_refusal, render_usage
from gpuspawner.form.view_model import STATIC, Live, OwnServer, Usage, WithheldCard

__all__ = [
    "STATIC",
    "Live",
    "OwnServer",
    "Usage",
    "WithheldCard",
    "pressed",
    "render",
    "render_refusal",
    "render_usage",
]
