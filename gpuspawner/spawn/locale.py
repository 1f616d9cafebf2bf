"""The language of a spawner's messages."""

from tornado import web

from gpuspawner import language
from gpuspawner.spawn.host import Host


def set_locale(spawner: Host, handler: web.RequestHandler | None = None) -> None:
    """From here on, answer this request in the language of the user who sent it.

    Without a handler the language stays as it is: the hub removes the handler from a spawner at the
    end of each start, and it gives the default server's spawner none for a named server's form.

    Args:
        spawner: The server's spawner; its trait ``language`` comes first.
        handler: The request's handler; None for the one that the hub has given the spawner.
    """
    if spawner.language:
        language.set_locale(spawner.language)
    elif serving := handler or spawner.handler:
        language.set_locale(serving.request.headers.get("Accept-Language", ""))
