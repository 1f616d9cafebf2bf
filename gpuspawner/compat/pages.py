"""What JupyterHub serves, and what gpuspawner adds to it: texts on its pages, handlers, templates.

Read in ``jupyterhub/handlers/base.py`` and ``app.py`` of 5.5.0 and 6.1.1.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any
from weakref import ReferenceType, ref

from jupyterhub.scopes import Scope
from jupyterhub.spawner import Spawner
from markupsafe import Markup
from tornado import web
from tornado.httputil import HTTPServerRequest

Told = Callable[[Any], Markup]
"""Says something to the logged-in user, or nothing. On some pages, nobody is logged in."""


def announce(hub: Any, everywhere: Told, at_home: Told) -> None:
    """Show on the hub's pages what *everywhere* returns, and on the home page *at_home* too.

    The page with the form shows neither: it says it itself. The hub's own announcements stay above.
    The hub calls each template variable that is a function with the user (``handlers/base.py``,
    ``template_namespace``). A page's own announcement replaces the general one if it is a string.
    """
    variables = hub.template_vars
    general = variables.get("announcement")
    variables.setdefault("announcement_spawn", "" if general is None else general)
    announce_on(hub, "home", lambda user: _joined(everywhere(user), at_home(user)))
    variables["announcement"] = _below(general, everywhere)


def announce_on(hub: Any, page: str, told: Told) -> None:
    """Show what *told* returns on one of the hub's pages, below what is announced there."""
    variables, name = hub.template_vars, f"announcement_{page}"
    variables[name] = _below(variables.get(name, variables.get("announcement")), told)


def _below(own: Any, told: Told) -> Callable[[Any], Any]:
    """Return a function that adds our text to the hub's own announcement.

    An administrator's template may read another type than a text, such as a list: that stays.
    """

    def announcement(user: Any) -> Any:
        before = own(user) if callable(own) else own
        before = "" if before is None else before
        if not isinstance(before, str) or not (added := told(user)):
            return before
        return _joined(Markup(before), added)  # noqa: S704, the administrator's HTML

    return announcement


def _joined(*texts: Markup) -> Markup:
    return Markup("<br>").join(text for text in texts if text)


_UNTIL_SERVED = 0.05
"""How often to look whether the hub has its web application, in seconds."""

Handler = tuple[Any, ...]
"""A path, its handler, and perhaps the handler's arguments, as tornado takes them."""


def has_handler(hub: Any, path: str) -> bool:
    """Whether *path* is among the handlers added to the hub's own."""
    return any(entry[0] == path for entry in getattr(hub, "extra_handlers", ()))


def add_handlers(hub: Any, handlers: Sequence[Handler]) -> None:
    """Add handlers to those of a hub.

    The hub makes its web application from ``extra_handlers`` during its start, before or after this
    call. So this adds to both, in place, because the hub logs a warning if that trait is set. The
    handlers' paths are below the hub's own prefix.
    """
    hub.extra_handlers.extend(handlers)
    application = getattr(hub, "tornado_application", None)
    if application is not None:
        prefix = hub.hub_prefix.rstrip("/")
        application.add_handlers(".*", [(f"{prefix}{path}", *rest) for path, *rest in handlers])


def add_templates(hub: Any, folder: str) -> None:
    """Let the hub find templates in a folder, behind an administrator's and before its own.

    The hub makes its loaders during its start, before or after this call (``app.py``,
    ``init_tornado_settings``).
    """
    own = str(Path(hub.data_files_path) / "templates")
    loaders = _loaders(hub.tornado_settings.get("jinja2_env"))
    for paths in (hub.template_paths, *(getattr(it, "searchpath", []) for it in loaders)):
        paths.insert(paths.index(own) if own in paths else len(paths), folder)


def _loaders(environment: Any) -> Sequence[Any]:
    """Return the loaders of the hub's environment; none before there is one.

    None either if it is an administrator's own, in which ours can't extend the hub's templates.
    """
    try:
        environment.loader.get_source(environment, "templates/page.html")
        loaders: Sequence[Any] = environment.loader.loaders
    except Exception:  # noqa: BLE001, a loader may be an administrator's own code
        return ()
    return loaders


def holds_for_all(handler: Any, *names: str) -> bool:
    """Whether the caller of a request has these scopes for everybody, and not only for some."""
    return all(handler.parsed_scopes.get(it) is Scope.ALL for it in names)


_request: ContextVar[ReferenceType[HTTPServerRequest]] = ContextVar("gpuspawner_request")
"""Weak, because what a start leaves running has the context of the request that began it."""


def _answered() -> HTTPServerRequest | None:
    found = _request.get(None)
    return found() if found else None


def is_heard() -> bool:
    """Whether `hear` has called its function for the request that the hub answers."""
    return _answered() is not None


def xsrf_token(spawner: Spawner) -> str:
    """Return the token for the buttons of the page that the hub draws; "" if it draws none.

    A spawner's handler may be that of an earlier page, and of somebody else's: the hub sets it for
    each form, and forgets it after a start. A form that was sent had the token.
    """
    request, handler = _answered(), spawner.handler
    if request is None:
        return ""
    is_its = handler is not None and handler.request is request
    token = handler.xsrf_token if is_its else request.arguments.get("_xsrf", [b""])[-1]
    return str(token, "ascii", "replace")


async def hear(hub: Any, heard: Callable[[HTTPServerRequest], object]) -> None:
    """Call *heard* for each request to a hub, in the context in which the hub answers it.

    The hub makes its web application late in its start, and gives no request to the functions of
    `announce`.
    """

    class Hearing(web.OutputTransform):
        def __init__(self, request: HTTPServerRequest) -> None:
            _request.set(ref(request))
            heard(request)

    while getattr(hub, "tornado_application", None) is None:  # noqa: ASYNC110, it tells nobody
        await asyncio.sleep(_UNTIL_SERVED)
    hub.tornado_application.add_transform(Hearing)
