"""The hub's own list of handlers, to which ours are added."""

from typing import Any

from gpuspawner.form import STATIC
from gpuspawner.web.addresses import DECISION, FILES, STATES, is_served
from gpuspawner.web.handlers import DecisionHandler, StatesHandler, StaticHandler

_HANDLERS = (
    (STATES, StatesHandler),
    (DECISION, DecisionHandler),
    (FILES, StaticHandler, {"path": str(STATIC)}),
)


def serve(hub: Any) -> None:
    """Add our handlers to those of a hub, once.

    The hub makes its web application out of ``extra_handlers`` at some time of its start, before or
    after this. Both are filled in place: whoever sets that trait has the hub log a warning.

    Args:
        hub: The `JupyterHub` of this process.
    """
    if is_served(hub):
        return
    hub.extra_handlers.extend(_HANDLERS)
    application = getattr(hub, "tornado_application", None)
    if application is not None:
        prefix = hub.hub_prefix.rstrip("/")
        ours = [(f"{prefix}{path}", *rest) for path, *rest in _HANDLERS]
        application.add_handlers(".*", ours)
