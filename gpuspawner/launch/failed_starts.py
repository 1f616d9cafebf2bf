"""Lets the hub's pages and the next form say why a start failed after the click.

The hub's own pages say nothing of an exception without a message for users.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from tornado import web

from gpuspawner import messages
from gpuspawner.compat import jupyterhub, kubespawner
from gpuspawner.form.addresses import spawn
from gpuspawner.start import submitted_form
from gpuspawner.start.host import Host
from gpuspawner.start.refusal import Refusal

FailedStarts = WeakKeyDictionary[object, str]
"""What the next form says of the last start that failed, by `jupyterhub.identity`."""


@contextmanager
def explaining(
    spawner: Host, failed: FailedStarts, worded: Callable[[str], str] = messages.last_start_failed
) -> Iterator[None]:
    """Let the pages of a start that fails in this block say why, and lead to the next one.

    *worded* says how the next form tells why.
    """

    def explain(error: Exception, message: messages.Message, later: str) -> None:
        if getattr(error, "gpuspawner_is_explained", False):  # as a wait in line, in its own words
            return
        vars(error).update(
            jupyterhub_message=message.text,
            jupyterhub_html_message=messages.with_way_back(message, spawn(spawner)).html,
            gpuspawner_is_explained=True,
        )
        failed[jupyterhub.identity(spawner)] = worded(later)

    try:
        yield
    except Refusal as refusal:
        message = messages.Message(refusal.text, refusal.jupyterhub_html_message)
        explain(refusal, message, refusal.on_form.message.text)  # without what was free then
        raise
    except web.HTTPError:  # an administrator's hook, in its own words
        raise
    except Exception as error:
        if not (hasattr(error, "jupyterhub_message") or kubespawner.is_of_others(error)):
            unexplained = messages.unexplained()
            explain(error, unexplained, unexplained.text)
        raise


@contextmanager
def explaining_late(spawner: Host, failed: FailedStarts) -> Iterator[None]:
    """As `explaining`, for a start whose form the hub has answered; else, that form says why."""
    try:
        yield
    except Exception:
        draft = submitted_form.current()
        if draft is None or draft.request is None or not draft.request.done():
            raise
        with explaining(spawner, failed):
            raise


def forget(spawner: Host, failed: FailedStarts) -> None:
    """Forget the last failure: a new start begins."""
    failed.pop(jupyterhub.identity(spawner), None)


def last_failure(spawner: Host, failed: FailedStarts) -> str:
    """Say why the last start failed; "" if it didn't, or if this form already says so."""
    draft = submitted_form.current()
    if draft is not None and draft.refused is not None:
        return ""
    return failed.get(jupyterhub.identity(spawner), "")
