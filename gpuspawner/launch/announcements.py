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
from gpuspawner.compat import jupyterhub, people
from gpuspawner.form.addresses import line, stop
from gpuspawner.form.view_model import AboveTheForm, OwnServer, WithheldCard
from gpuspawner.kube.startup import read_pod
from gpuspawner.language import gettext as _
from gpuspawner.launch import failed_starts
from gpuspawner.launch.server_state import last_of
from gpuspawner.runtime import Runtime
from gpuspawner.start.host import Host
from gpuspawner.start.policing import Entitlement
from gpuspawner.troubles.ending import Ending, Mishap, mishaps, utc_now

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
    jupyterhub.announce(hub, or_nothing(told_everywhere), or_nothing(at_home))
    running.run(jupyterhub.hear(hub, heard))


def or_nothing(told: jupyterhub.Told) -> jupyterhub.Told:
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
    recent = [it for it in _ended(user) if now - it[1].moment < _NEWS]
    return _lines(messages.server_ended(it, now, name) for name, it in recent)


def _ended(user: Any) -> Iterator[tuple[str, Ending]]:
    for name, state in sorted(jupyterhub.stopped(user).items()):
        if ending := last_of(state):
            yield name, ending


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
    """Lead to the page of each server that waits in line, also without the hub's scripts."""
    for name, spawner in sorted(jupyterhub.starting(user).items()):
        if spawner.gpuspawner_gates.turn.is_on:
            yield messages.waits_in_line(name, line(spawner))


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


def last_ending(spawner: Host) -> str:
    """Say how the last server of this form ended; "" if there is nothing to say."""
    ending = last_of(jupyterhub.stored_state(spawner))
    return messages.last_server_ended(ending, utc_now()) if ending else ""


def above_the_form(
    spawner: Host, runtime: Runtime, entitlement: Entitlement
) -> AboveTheForm | None:
    """Return what is left to the owner, after what became of the last server.

    None if there is nothing to say.
    """
    failed, ended = failed_starts.last_failure(spawner, runtime.failed_starts), last_ending(spawner)
    withheld = tuple(
        WithheldCard(it.display_name, it.description, explanation)
        for it, explanation in entitlement.withheld
    )
    servers = tuple(_own(spawner, name) for name in entitlement.servers)
    lines = tuple(filter(None, [failed, ended, *entitlement.lines]))
    return AboveTheForm(lines, servers, withheld) if lines or withheld else None


def _own(spawner: Host, name: str) -> OwnServer:
    """Describe a server; a user can't stop one that starts or stops, or that the hub lost."""
    running = spawner.user.spawners.get(name)
    can_stop = running is not None and running.ready
    shown = name or _("your default server")
    return OwnServer(shown, stop(spawner, name) if can_stop else "")


def _lines(lines: Iterable[Markup]) -> Markup:
    """Join them; the last words of a server may be longer than a phone is wide."""
    joined = messages.in_language(Markup("<br>").join(filter(None, lines)))
    return joined and Markup('<span class="text-break">{}</span>').format(joined)
