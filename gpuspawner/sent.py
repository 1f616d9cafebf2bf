"""What a request sent, hostile until `gpuspawner.options` has read it.

Every reader and writer of JSON goes one call deeper for each list or object within another, and
Python ends such a call where its stack ends. JupyterHub reads a body with more of the stack than it
later has to store it, so it fails to store what it could read, and counts that as its own failure.
So nothing is read or stored that holds more lists and objects than any stack has room for.
"""

import json
from collections.abc import Mapping

from jupyterhub.spawner import Spawner

from gpuspawner import hub

MOST_CONTAINERS = 100
"""How many lists and objects options may hold, and so how deep they may be; ours hold one."""

MOST_VALUES = 10_000
"""How many values options may hold; more would only take time to look at."""

TOO_MUCH = "more than can be read"
"""Stands for options that are not within bounds."""

_FIELDS = {"user_options", "display_name"}
"""What JupyterHub 6 knows in a REST body; a body with neither is the options themselves."""


class UnreadableError(ValueError):
    """A body is no JSON in UTF-8; the hub has made something of it all the same."""


def is_within_bounds(value: object) -> bool:
    """Whether options are small enough to be read, copied and stored. Itself never goes deep."""
    unseen, containers, values = [value], 0, 0
    while unseen:
        found = unseen.pop()
        if isinstance(found, Mapping):
            found = list(found.values())
        if isinstance(found, list | tuple):
            containers += 1
            values += len(found)
            if containers > MOST_CONTAINERS or values > MOST_VALUES:
                return False
            unseen.extend(found)
    return True


def requested_options(spawner: Spawner) -> object:
    """What this start was asked for, or None where nothing was said.

    Raises:
        UnreadableError: See there.
    """
    if hub.draft() is not None:
        return spawner.user_options
    if spawner.handler is None:
        return spawner.user_options or None
    return options_in(spawner.handler.request.body)


def options_in(body: bytes) -> object:
    """What a REST start is asked for, or None where nothing is said.

    Without options the hub hands on what it stored last, refused or not. JupyterHub 6 takes an
    empty object for no body, and knows a body ``{"user_options": ..., "display_name": ...}``;
    JupyterHub 5 takes every body as the options.

    Raises:
        UnreadableError: See there.
    """
    if not body:
        return None
    # A text may hold such characters too; who needs a hundred of them in one?
    if body.count(b"[") + body.count(b"{") > MOST_CONTAINERS:
        return TOO_MUCH
    try:
        sent = json.loads(body.decode())
    except ValueError as error:
        raise UnreadableError("the request's body isn't JSON in UTF-8") from error
    if not hub.COUNTS_REFUSALS and isinstance(sent, dict) and _FIELDS & sent.keys():
        return sent.get("user_options")
    return sent


def option_names(query: dict[str, list[str]]) -> dict[str, list[str]]:
    """The query's options by their plain names, as JupyterHub 6 hands them over.

    JupyterHub 6 takes the prefix off ``?opt-gpus=2`` and leaves plain names out beside it;
    JupyterHub 5 hands everything over as it came.
    """
    prefixed = {name[4:]: values for name, values in query.items() if name.startswith("opt-")}
    return prefixed or {name: v for name, v in query.items() if name != "display_name"}
