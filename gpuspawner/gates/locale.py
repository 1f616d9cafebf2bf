"""The language of a spawner's messages."""

from tornado import web

from gpuspawner import language
from gpuspawner.gates.host import Host
from gpuspawner.traits.trait_types import setting


def set_locale(spawner: Host, handler: web.RequestHandler | None = None) -> None:
    """From here on, answer this request in the language of the user who sent it.

    The trait ``language`` comes first, then *handler*, then the handler that the hub has given the
    spawner. If that is missing too, the language stays as it is: the hub removes it at the end of
    each start, and gives none to the default server's spawner for a named server's form.
    """
    if chosen := setting(spawner, "language"):
        language.set_locale(chosen)
    elif serving := handler or spawner.handler:
        language.set_locale(serving.request.headers.get("Accept-Language", ""))
