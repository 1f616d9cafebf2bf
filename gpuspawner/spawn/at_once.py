"""Answering at once what needs no waiting.

JupyterHub wraps an awaitable from a hook into a task, and with ``slow_spawn_timeout`` 0 it has
answered "202 Accepted" before that task runs. So a gate does what it can before it returns, and a
refusal is the answer itself.
"""

from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


def at_once(begin: Callable[[], Coroutine[Any, Any, T]]) -> T | Coroutine[Any, Any, T]:
    """Run a coroutine until it has to wait.

    Our own waits begin with ``asyncio.sleep(0)``, and a coroutine that has come to one goes on in
    the task that awaits the rest. What an administrator's function waits for may belong to the
    task in which it began (a time-out would cancel that one), so there the coroutine begins again.

    Args:
        begin: Makes the coroutine. What it does before an administrator's function waits may be
            done twice.

    Returns:
        The result, or the rest of the coroutine.
    """
    begun = begin()
    try:
        waits_for = begun.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    if waits_for is None:  # asyncio.sleep(0)
        return _finish(begun)
    begun.close()
    return begin()


async def _finish(begun: Coroutine[Any, Any, T]) -> T:
    finished: T = await _Rest(begun)
    return finished


class _Rest:
    """What a coroutine still has to do."""

    def __init__(self, begun: Coroutine[Any, Any, Any]) -> None:
        self._begun = begun

    def __await__(self) -> Generator[Any, Any, Any]:
        return (yield from self._begun.__await__())
