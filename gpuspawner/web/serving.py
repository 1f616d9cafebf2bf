"""Add gpuspawner's endpoints to the hub."""

from typing import Any

from gpuspawner.compat.jupyterhub import add_handlers
from gpuspawner.form import STATIC
from gpuspawner.form.addresses import DECISION, FILES, STATES, is_served
from gpuspawner.web.handlers import DecisionHandler, StatesHandler, StaticHandler

_HANDLERS = (
    (STATES, StatesHandler),
    (DECISION, DecisionHandler),
    (FILES, StaticHandler, {"path": str(STATIC)}),
)


def serve(hub: Any) -> None:
    """Add our handlers to those of a hub, once.

    Args:
        hub: The `JupyterHub` of this process.
    """
    if not is_served(hub):
        add_handlers(hub, _HANDLERS)
