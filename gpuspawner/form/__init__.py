"""The spawn form: fields for the hub's own `<form>`, rendered on the server."""

from gpuspawner.form.alternative_button import pressed
from gpuspawner.form.render import render, render_refusal
from gpuspawner.form.view_model import STATIC, Live

__all__ = ["STATIC", "Live", "pressed", "render", "render_refusal"]
