"""The language in which a spawner's owner is answered."""

from tornado import web

from gpuspawner import language
from gpuspawner.spawn.host import Host


def set_locale(spawner: Host, handler: web.RequestHandler | None = None) -> None:
    """Answer whoever is served by this request in their own language, from here on.

    The hub takes the handler from a spawner at the end of each start, and never gives one to the
    default server's for a form of a named one: what has begun in a language then goes on in it.

    Args:
        spawner: The spawner that is asked; its trait ``language`` comes first.
        handler: What serves the request; None for the one that the hub has given the spawner.
    """
    if spawner.language:
        language.set_locale(spawner.language)
    elif serving := handler or spawner.handler:
        language.set_locale(serving.request.headers.get("Accept-Language", ""))
