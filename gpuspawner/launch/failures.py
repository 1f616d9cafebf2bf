"""Lets the hub's pages and the next form say why a start failed after the click.

The hub's own pages say nothing of an exception without a message for users.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from tornado import web

from gpuspawner import messages
from gpuspawner.compat import kubespawner
from gpuspawner.form.addresses import spawn
from gpuspawner.messages import Message
from gpuspawner.runtime import Runtime
from gpuspawner.start import drafts
from gpuspawner.start.host import Host
from gpuspawner.start.refusal import Refusal


@contextmanager
def explaining(
    spawner: Host, running: Runtime, worded: Callable[[str], str] = messages.last_start_failed
) -> Iterator[None]:
    """Let the pages of a start that fails in this block say why, and lead to the next one.

    *worded* says how the next form tells why.
    """
    explain = partial(_explain, spawner, running, worded)
    try:
        yield
    except Refusal as refusal:
        explain(refusal, Message(refusal.text, refusal.jupyterhub_html_message))
        raise
    except web.HTTPError:  # an administrator's hook, in its own words
        raise
    except Exception as error:
        if not (hasattr(error, "jupyterhub_message") or kubespawner.is_of_others(error)):
            explain(error, messages.unexplained())
        raise


def _explain(
    spawner: Host,
    running: Runtime,
    worded: Callable[[str], str],
    error: Exception,
    message: Message,
) -> None:
    html = messages.with_way_back(message, spawn(spawner)).html
    vars(error).update(jupyterhub_message=message.text, jupyterhub_html_message=html)
    running.failed_starts[spawner.user.name, spawner.name] = worded(message.text)


def forget(spawner: Host, running: Runtime) -> None:
    """Forget the last failure: a new start begins."""
    running.failed_starts.pop((spawner.user.name, spawner.name), None)


def told_on_form(spawner: Host, running: Runtime) -> str:
    """Say why the last start failed; "" if it didn't, or if this form already says so."""
    draft = drafts.current()
    if draft is not None and draft.refused is not None:
        return ""
    return running.failed_starts.get((spawner.user.name, spawner.name), "")
