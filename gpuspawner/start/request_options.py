"""The options that a request sent, untrusted until `gpuspawner.offers.user_options` reads them.

JSON readers and writers use one level of the Python stack for each nested list or object. When
JupyterHub stores options, it has less stack left than when it reads them. So it can read options
that it can't store, and counts that as its own failure.
"""

import json
from collections.abc import Mapping

from gpuspawner import messages
from gpuspawner.compat.jupyterhub import COUNTS_REFUSALS
from gpuspawner.start import submitted_form
from gpuspawner.start.host import Host
from gpuspawner.start.refusal import invalid

MOST_LEVELS = 100
"""How deep options may be nested; ours are one level deep."""

MOST_VALUES = 10_000
"""How many values options may hold; more would only take time to check."""

TOO_MUCH = "more than can be read"
"""Replaces options that aren't within bounds."""

WHY_TOO_MUCH = f"more than {MOST_LEVELS} levels deep, or more than {MOST_VALUES:,} values"
"""Why options aren't within bounds, for users and for the log."""

PROFILE = "profile"
"""The option that names one of KubeSpawner's profiles."""

_OF_THE_HUB = {"display_name", "_xsrf"}
"""What a query may have beside options."""

_FIELDS = {"user_options", "display_name"}
"""The fields of a REST body in JupyterHub 6; a body with neither is the options themselves."""


class Sketch(dict[str, object]):
    """Options of a server that nobody starts: what has to be written in may be missing."""


def is_within_bounds(value: object) -> bool:
    """Whether options are small enough to read, copy and store. This must not recurse itself."""
    level, levels, values = [value], 0, 0
    while holders := [it for it in level if isinstance(it, Mapping | list | tuple)]:
        levels += 1
        values += sum(map(len, holders))
        if levels > MOST_LEVELS or values > MOST_VALUES:
            return False
        level = [
            it for held in holders for it in (held.values() if isinstance(held, Mapping) else held)
        ]
    return True


def readable(value: object) -> object:
    """The options, or `TOO_MUCH` if they aren't within bounds."""
    return value if is_within_bounds(value) else TOO_MUCH


def requested_options(spawner: Host) -> object:
    """The options sent with this start, or None if it sends none.

    Raises:
        Refusal: The body isn't JSON in UTF-8, although the hub has accepted it.
    """
    if submitted_form.current() is not None:
        return spawner.user_options
    if spawner.handler is None:
        return spawner.user_options or None
    return options_in(spawner.handler.request.body)


def options_in(body: bytes) -> object:
    """The options in the body of a REST start, or None if it has none.

    Without options the hub passes on the options that it stored last, refused or not. JupyterHub 6
    treats an empty object as no body, and accepts the body ``{"user_options": ...,
    "display_name": ...}``; JupyterHub 5 treats every body as the options.

    Raises:
        Refusal: As `requested_options`.
    """
    if not body:
        return None
    try:
        sent = json.loads(body.decode())
    except RecursionError:
        return TOO_MUCH
    except ValueError:
        raise invalid((messages.unreadable_body(),)) from None
    if not is_within_bounds(sent):
        return TOO_MUCH
    if not COUNTS_REFUSALS and isinstance(sent, dict) and _FIELDS & sent.keys():
        return sent.get("user_options")
    return sent


def option_names(query: dict[str, list[str]]) -> dict[str, list[str]]:
    """The query's options by their plain names, as JupyterHub 6 passes them.

    JupyterHub 6 removes the prefix of ``?opt-gpus=2``, and then drops names without a prefix;
    JupyterHub 5 passes everything as sent. Both pass on the token of the hub's own forms.
    """
    prefixed = {name[4:]: values for name, values in query.items() if name.startswith("opt-")}
    return prefixed or {name: v for name, v in query.items() if name not in _OF_THE_HUB}
