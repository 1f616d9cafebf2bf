"""Let a gate answer without waiting, if it can.

JupyterHub wraps a hook's awaitable into a task, and with ``slow_spawn_timeout`` 0 it answers "202
Accepted" before that task runs. So a gate does as much as it can before it returns; then the hub's
answer is the refusal.
"""

from collections.abc import Callable, Coroutine, Generator
from types import coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def at_once(begin: Callable[[], Coroutine[Any, Any, T]]) -> T | Coroutine[Any, Any, T]:
    """Run a coroutine until it has to wait; return its result, or an awaitable for the rest.

    Our own code calls ``asyncio.sleep(0)`` before it waits; from there the coroutine continues in
    the task that awaits the rest. If an administrator's function waits, its awaitable may belong to
    the task in which it started (a timeout would cancel that task). Then *begin* makes a second
    coroutine, so the steps before that function may run twice.
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
    return await _rest(begun)


@coroutine
def _rest(begun: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    """Await a coroutine that has already started, which ``await`` refuses to do."""
    result: T = yield from begun
    return result
