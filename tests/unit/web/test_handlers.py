"""The hub's handlers that tell or change something about one user's servers."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from gpuspawner.use import gpus_page
from gpuspawner.web import handlers, line
from gpuspawner.web.rate_limits import Questions

SERVED = (*handlers._HANDLERS, *line.HANDLERS, *gpus_page.HANDLERS)


def about_servers() -> Iterator[Any]:
    """Yield each method of ours that takes a user's name, with its handler."""
    for _, handler, *_ in SERVED:
        for verb in ("get", "post"):
            method = inspect.unwrap(vars(handler).get(verb, len))
            if "user_name" in inspect.signature(method).parameters:
                yield pytest.param(handler, method, id=f"{handler.__name__}.{verb}")


@pytest.mark.parametrize(("handler", "method"), about_servers())
def test_each_address_about_one_users_servers_has_the_limit_per_user(
    handler: Any, method: Any
) -> None:
    assert isinstance(handler._questions, Questions)
    assert {"counted", "_questions"} <= set(method.__code__.co_names)


def test_no_two_addresses_share_their_limit() -> None:
    limits = [it._questions for _, it, *_ in SERVED if hasattr(it, "_questions")]

    assert len(limits) == len(set(map(id, limits))) == 10
