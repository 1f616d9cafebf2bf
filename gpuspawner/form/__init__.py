"""The spawn form: fields for the hub's own `<form>`, rendered on the server."""

from pathlib import Path

from gpuspawner.form.instead import pressed
from gpuspawner.form.render import render
from gpuspawner.form.view import Live

STATIC = Path(__file__).parent / "static"
"""The folder of the style sheet and the script."""

__all__ = ["STATIC", "Live", "pressed", "render"]
