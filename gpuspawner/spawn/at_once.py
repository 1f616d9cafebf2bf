"""Run a coroutine synchronously until it has to wait.

JupyterHub wraps a hook's awaitable into a task, and with ``slow_spawn_timeout`` 0 it answers "202
Accepted" before that task runs. So a gate does as much as it can before it returns; then the hub's
answer is the refusal.
"""

from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


def at_once(begin: Callable[[], Coroutine[Any, Any, T]]) -> T | Coroutine[Any, Any, T]:
    """Run a coroutine until it has to wait.

    Our own code calls ``asyncio.sleep(0)`` before it waits; from there the coroutine continues in
    the task that awaits the rest. If an administrator's function waits, its awaitable may belong to
    the task in which it started (a timeout would cancel that task), so the coroutine starts again.

    Args:
        begin: Makes the coroutine. The steps before an administrator's function waits may run
            twice.

    Returns:
        The result, or an awaitable for the rest of the coroutine.
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
    """An awaitable for the rest of a coroutine that has already started."""

    def __init__(self, begun: Coroutine[Any, Any, Any]) -> None:
        self._begun = begun

    def __await__(self) -> Generator[Any, Any, Any]:
        return (yield from self._begun.__await__())
