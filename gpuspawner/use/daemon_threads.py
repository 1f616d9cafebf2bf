"""Calls that may hang, in threads that nobody waits for."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any


async def aside(call: Callable[..., Any], *args: object) -> Any:
    """Call a function in a thread of its own, and return what it returns."""
    return await asyncio.wrap_future(begun(call, *args))


def begun(call: Callable[..., Any], *args: object) -> Future[Any]:
    """Begin a call in a thread of its own, and return what will have its end.

    `asyncio.to_thread` has a handful of threads for the whole hub, which also looks up addresses
    in them, and the hub's process waits for them before it ends.

    Raises:
        RuntimeError: The hub can have no more threads.
    """
    done: Future[Any] = Future()
    done.set_running_or_notify_cancel()  # from here on, it can't be cancelled

    def run() -> None:
        try:
            done.set_result(call(*args))
        except BaseException as error:  # noqa: BLE001, whoever waits raises it again
            # Of `next()` a future takes none, and of `sys.exit()` the hub would end.
            is_usual = isinstance(error, Exception) and not isinstance(error, StopIteration)
            done.set_exception(error if is_usual else _caused_by(error))

    Thread(target=run, daemon=True).start()
    return done


def _caused_by(error: BaseException) -> RuntimeError:
    """Return an error that anybody can raise, and whose traceback is that of another, too."""
    made = RuntimeError(repr(error))
    made.__cause__ = error
    return made
