"""The administrator's ``options_form``, which may be a function that sets this user's profiles.

KubeSpawner makes its form while such a function runs, but ours has to wait for the cluster. So the
function gets a mark, and the form replaces the mark when the function has returned.
"""

import asyncio
import inspect
import secrets
from collections.abc import Callable
from typing import Any

from gpuspawner.start.host import Host, log_name

PLACE = f"<!-- the fields of gpuspawner: {secrets.token_hex(8)} -->"
"""Marks the place of our fields in a form."""

PATIENCE = 30.0
"""How long a start waits for the function, in seconds."""


class _NoneYet(str):
    """An empty form that differs from one that an administrator sets."""

    __slots__ = ()


NONE_YET = _NoneYet()
"""The default while a class of the administrator's is still in its ``__init__``.

There, it may set a form of its own if it finds none. If it doesn't, our form is the default.
"""


def is_set(spawner: Host) -> bool:
    """Whether the administrator has set a form or a function, instead of leaving the default."""
    is_known = spawner.trait_has_value("options_form") or not spawner.has_trait("options_form")
    return is_known and spawner.options_form != PLACE


def renew(spawner: Host, ours: Callable[[], Any]) -> None:
    """Let *ours* be the default if a class found none in its ``__init__``, and has set none."""
    if spawner.trait_has_value("options_form") and spawner.options_form is NONE_YET:
        spawner.options_form = ours()


async def run(spawner: Host) -> None:
    """Run the function as for a page: REST starts and restarted hubs need its profiles too.

    If it fails or hangs, KubeSpawner's behaviour stays: it starts with the profiles that are set.
    """
    try:
        drawn = spawner.options_form(spawner) if callable(spawner.options_form) else None
        if inspect.isawaitable(drawn):
            async with asyncio.timeout(PATIENCE):
                await drawn
    except Exception:
        spawner.log.exception("The function in options_form failed for %s", log_name(spawner))
