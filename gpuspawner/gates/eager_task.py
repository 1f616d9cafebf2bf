"""Let a gate answer without waiting, if it can.

JupyterHub wraps a hook's awaitable into a task, and with ``slow_spawn_timeout`` 0 it answers "202
Accepted" before that task runs. So a gate does as much as it can before it returns; then the hub's
answer is the refusal.
"""

import asyncio
from collections.abc import Coroutine, Generator
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")


def at_once(begun: Coroutine[Any, Any, T]) -> T | asyncio.Task[T]:
    """Run a coroutine until it has to wait; return its result, or the task in which it goes on.

    It is in that task from its first line on, because what it waits for may belong to the current
    task: a timeout, for example, cancels it. From Python 3.12 on, asyncio has such tasks too, and
    calls them eager.
    """
    loop, current, context = asyncio.get_running_loop(), asyncio.current_task(), copy_context()
    steps = _Steps(begun)
    # No task factory, because an eager one would begin the coroutine itself.
    task = asyncio.Task(steps, loop=loop, context=context)
    # Both functions are documented, for those who make tasks of their own.
    if current is not None:
        asyncio._leave_task(loop, current)  # noqa: SLF001
    asyncio._enter_task(loop, task)  # noqa: SLF001
    try:
        context.run(steps.begin)
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        asyncio._leave_task(loop, task)  # noqa: SLF001
        if current is not None:
            asyncio._enter_task(loop, current)  # noqa: SLF001
    return task


class _Steps(Coroutine[Any, Any, T]):
    """A coroutine that can begin before its task does.

    By the mark ``_asyncio_future_blocking``, a task knows that a future was awaited, and takes it
    off; until then, nobody else can await the future.
    A task that finds it at its end has nothing to do.
    """

    def __init__(self, begun: Coroutine[Any, Any, T]) -> None:
        self._rest = _rest(begun)
        self._awaited: list[Any] = []

    def begin(self) -> None:
        self._awaited.append(awaited := next(self._rest))
        if asyncio.isfuture(awaited):  # others may await it before the task does
            awaited._asyncio_future_blocking = False  # noqa: SLF001

    def send(self, value: Any) -> Any:
        awaited = self._awaited.pop() if self._awaited else None
        if awaited is None:  # also if it was ``sleep(0)``: that is over once the task runs
            return self._rest.send(value)
        if asyncio.isfuture(awaited):
            awaited._asyncio_future_blocking = True  # noqa: SLF001
        return awaited

    def throw(self, *error: Any) -> Any:
        while self._awaited:
            if asyncio.isfuture(awaited := self._awaited.pop()):
                awaited.cancel()  # as a task does with what it waits for
        return self._rest.throw(*error)

    def close(self) -> None:
        self._rest.close()

    def __await__(self) -> Generator[Any, Any, T]:
        return self._rest


def _rest(begun: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    return (yield from begun.__await__())  # unlike it, a generator may be resumed at its end
