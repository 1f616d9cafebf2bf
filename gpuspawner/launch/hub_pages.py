"""What the hub's pages say of a user's servers, beside the hub's own announcement.

Every page says how the last servers ended. The home page also says when those that run will end,
what has happened to them since they started, and which ones wait in line. The form says how its own
server ended, and what policies leave to its owner.
"""

import logging
from collections.abc import Iterable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

from markupsafe import Markup
from tornado.httputil import HTTPServerRequest

from gpuspawner import language, messages
from gpuspawner.compat import jupyterhub, pages, people
from gpuspawner.form.addresses import line
from gpuspawner.kube.kueue import is_gated
from gpuspawner.kube.startup import read_pod
from gpuspawner.launch import failed_starts
from gpuspawner.launch.server_state import last_of
from gpuspawner.runtime import Runtime
from gpuspawner.start.host import Host
from gpuspawner.troubles.ending import Mishap, mishaps, utc_now

log = logging.getLogger(__name__)

_NEWS = timedelta(days=1)
"""How long pages say that a server has ended; the form says it until the next start."""


def announce(hub: Any, running: Runtime, spoken: str) -> None:
    """Let the hub's pages tell of the user's servers, in the language of who reads them.

    *spoken* is the one language for everybody; "" if browsers decide.
    """

    def heard(request: HTTPServerRequest) -> None:
        language.set_locale(spoken or request.headers.get("Accept-Language", ""))

    at_home = partial(told_at_home, running)
    pages.announce(hub, or_nothing(told_everywhere), or_nothing(at_home))
    running.run(pages.hear(hub, heard))


def or_nothing(told: pages.Told) -> pages.Told:
    """Return a function that tells nothing if it fails: each page of the hub calls it."""

    def safely(user: Any) -> Markup:
        try:
            return told(user)
        except Exception:
            log.exception("Can't tell of a user's servers")
            return Markup()

    return safely


def told_everywhere(user: Any) -> Markup:
    """Say how a user's servers have ended lately."""
    now = utc_now()
    ended = ((last_of(it), name) for name, it in sorted(jupyterhub.stopped(user).items()))
    recent = ((it, name) for it, name in ended if it and now - it.moment < _NEWS)
    return _lines(messages.server_ended(it, now, name) for it, name in recent)


def told_at_home(running: Runtime, user: Any) -> Markup:
    """Say when a user's running servers end, what has happened to them, and which ones wait."""
    if user is None:
        return Markup()
    happened = [
        messages.mishap(it, name, utc_now())
        for name, spawner in sorted(jupyterhub.running(user).items())
        for it in _mishaps(running, spawner)
    ]
    return _lines([*_ends(running, user), *happened, *_waiting(user)])


def _waiting(user: Any) -> Iterator[Markup]:
    """Say which servers wait; lead to the page of the line, also without the hub's scripts."""
    for name, spawner in sorted(jupyterhub.starting(user).items()):
        if spawner.gpuspawner_gates.turn.is_on:
            from gpuspawner.messages.line import waits_in_line  # only hubs with a line load it

            yield waits_in_line(name, line(spawner))
            continue
        pod = read_pod(spawner.gpuspawner_stock.known_pod())
        if pod is not None and is_gated(pod.spec.scheduling_gates):
            yield messages.waits_in_queue(name)


def _mishaps(running: Runtime, spawner: Host) -> list[Mishap]:
    now, pod = utc_now(), read_pod(spawner.gpuspawner_stock.known_pod())
    if pod is None:
        return []
    found = mishaps(pod, running.view.state.nodes.get(pod.spec.node_name))
    return [it for it in found if it.moment is None or now - it.moment < _NEWS]


def _ends(running: Runtime, user: Any) -> list[Markup]:
    if running.policies is None:
        return []
    found, now = running.policies.accounts.ends(user.db, people.person(user)), utc_now()
    ending = sorted((max(0, round((end - now).total_seconds())), name) for end, name in found)
    return [messages.ends_in(name, left) for left, name in ending]


def last_server(spawner: Host, failed: failed_starts.FailedStarts) -> tuple[str, ...]:
    """Return what became of the form's last server, as sentences; there may be none."""
    ending = last_of(jupyterhub.stored_state(spawner))
    ended = messages.last_server_ended(ending, utc_now()) if ending else ""
    return tuple(filter(None, (failed_starts.last_failure(spawner, failed), ended)))


def _lines(lines: Iterable[Markup]) -> Markup:
    """Join them; the last words of a server may be longer than a phone is wide."""
    joined = messages.in_language(Markup("<br>").join(filter(None, lines)))
    return joined and Markup('<span class="text-break">{}</span>').format(joined)
