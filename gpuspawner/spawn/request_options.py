"""What a request sent, hostile until `gpuspawner.options` has read it.

Every reader and writer of JSON goes one call deeper for each list or object within another, and
Python ends such a call where its stack ends. JupyterHub reads a body with more of the stack than it
later has to store it, so it fails to store what it could read, and counts that as its own failure.
So nothing is read or stored that is nested deeper than any stack has room for.
"""

import json
from collections.abc import Iterable, Mapping, Sequence

from gpuspawner.compat.jupyterhub import COUNTS_REFUSALS
from gpuspawner.spawn import drafts
from gpuspawner.spawn.host import Host

MOST_LEVELS = 100
"""How deep options may be nested; ours are one level deep."""

MOST_VALUES = 10_000
"""How many values options may hold; more would only take time to look at."""

TOO_MUCH = "more than can be read"
"""Stands for options that are not within bounds."""

WHY_TOO_MUCH = f"more than {MOST_LEVELS} levels deep, or more than {MOST_VALUES:,} values"
"""What is wrong with them, for people and for the log."""

_FIELDS = {"user_options", "display_name"}
"""What JupyterHub 6 knows in a REST body; a body with neither is the options themselves."""


class UnreadableError(ValueError):
    """A body is no JSON in UTF-8; the hub has made something of it all the same."""


def is_within_bounds(value: object) -> bool:
    """Whether options are small enough to be read, copied and stored. Itself never goes deep."""
    level, levels, values = [value], 0, 0
    while holders := [it for it in level if isinstance(it, Mapping | list | tuple)]:
        levels += 1
        values += sum(map(len, holders))
        if levels > MOST_LEVELS or values > MOST_VALUES:
            return False
        level = [it for held in holders for it in _values(held)]
    return True


def readable(value: object) -> object:
    """The options, or what stands for them if they are not within bounds."""
    return value if is_within_bounds(value) else TOO_MUCH


def _values(held: Mapping[str, object] | Sequence[object]) -> Iterable[object]:
    return held.values() if isinstance(held, Mapping) else held


def requested_options(spawner: Host) -> object:
    """What this start was asked for, or None where nothing was said.

    Raises:
        UnreadableError: See there.
    """
    if drafts.current() is not None:
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
    try:
        sent = json.loads(body.decode())
    except RecursionError:
        return TOO_MUCH
    except ValueError as error:
        raise UnreadableError("the request's body isn't JSON in UTF-8") from error
    if not is_within_bounds(sent):
        return TOO_MUCH
    if not COUNTS_REFUSALS and isinstance(sent, dict) and _FIELDS & sent.keys():
        return sent.get("user_options")
    return sent


def option_names(query: dict[str, list[str]]) -> dict[str, list[str]]:
    """The query's options by their plain names, as JupyterHub 6 hands them over.

    JupyterHub 6 takes the prefix off ``?opt-gpus=2`` and leaves plain names out beside it;
    JupyterHub 5 hands everything over as it came.
    """
    prefixed = {name[4:]: values for name, values in query.items() if name.startswith("opt-")}
    return prefixed or {name: v for name, v in query.items() if name != "display_name"}
