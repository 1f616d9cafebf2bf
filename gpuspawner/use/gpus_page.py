"""The page of who has the GPUs: numbers for everybody, and names for administrators."""

import asyncio
import time
from collections.abc import Callable, Hashable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyterhub.handlers import BaseHandler
from jupyterhub.user import User
from tornado import web

from gpuspawner.cluster.background import Turn
from gpuspawner.cluster.health import Stale
from gpuspawner.compat.pages import add_handlers, add_templates, holds_for_all
from gpuspawner.form.addresses import FIGURES, GPUS, GPUS_STOP, GPUS_STREAM, gpus, path_of, static
from gpuspawner.form.render import environment
from gpuspawner.language import gettext as _
from gpuspawner.messages import login_ended, stale
from gpuspawner.start.host import set_locale
from gpuspawner.start.refusal import messages_page
from gpuspawner.use import gpus_view
from gpuspawner.use.census import Census
from gpuspawner.use.gpus_view import ForAdministrators, ForAll
from gpuspawner.use.holders import Query, holders
from gpuspawner.use.live_census import TURN_SECONDS
from gpuspawner.web.handlers import StopHandler, StreamHandler
from gpuspawner.web.open_form import OpenForm, Shown
from gpuspawner.web.rate_limits import Questions, counted

if TYPE_CHECKING:
    from gpuspawner.use.hub_use import HubUse

_PAGE = """{% extends "page.html" %}
{% block title %}{{ gpuspawner_title }}{% endblock title %}
{% block main %}
<main class="container">{{ gpuspawner_figures | safe }}</main>
{% endblock %}
"""
_MINUTE = 60.0


def sees_names(handler: BaseHandler) -> bool:
    """Whether the caller may see whose servers run."""
    may_change = holds_for_all(handler, "admin:servers")
    return may_change or holds_for_all(handler, "list:users", "read:servers")


class OfHubUse:
    """A handler that knows what the hub has once."""

    def initialize(self, use: "HubUse") -> None:
        """Take it from the application."""
        self.use = use


class FiguresHandler(OfHubUse, BaseHandler):  # type: ignore[misc]
    """Serves the part of the page that changes."""

    _questions = Questions()

    def set_default_headers(self) -> None:
        """Let nothing keep names after somebody has logged out."""
        super().set_default_headers()
        self.set_header("Cache-Control", "no-store")
        self.set_header("X-Content-Type-Options", "nosniff")

    @web.authenticated
    async def get(self) -> None:
        """Send what the caller may see."""
        async with counted(self._questions, self.current_user.name):
            set_locale(self.current_user.spawner, self)
            figures = await self.figures()
            await asyncio.sleep(0)  # what the hub does with it takes as long as a turn
            await self.show(figures)

    async def show(self, figures: str) -> None:
        """Send the figures."""
        self.finish(figures)

    async def figures(self) -> str:
        """Return what the page shows, as HTML."""
        turn, taken = Turn(TURN_SECONDS), await self.use.census.take()
        base, page = self.hub.base_url, gpus(self.hub.base_url)
        more = await self._for_administrators(taken, page, turn) if sees_names(self) else None
        template = environment().get_template("gpus.html")
        pieces = template.generate(
            all=self._for_all(taken),
            more=more,
            explained=messages_page(self.current_user.spawner),
            page=page,
            file=partial(static, base),
            user=path_of(self.current_user.name, ""),
            xsrf=self.xsrf_token.decode("ascii"),
            stale=stale(),
            login_ended=login_ended(),
        )
        made = []
        for piece in pieces:
            made.append(piece)
            await turn.end_if_long()
        return "".join(made)

    def _for_all(self, taken: Census) -> ForAll:
        running, waiting = self.use.running, self.use.running.preflight.line
        names = running.display_names
        return ForAll(
            gpus_view.said(len(waiting), running.view.health()),
            gpus_view.states(),
            gpus_view.accelerators(taken.accelerators, names, waiting.waiting()),
        )

    async def _for_administrators(self, taken: Census, page: str, turn: Turn) -> ForAdministrators:
        running = self.use.running
        names, shares, nodes = running.display_names, [], []
        if running.policies is not None:
            accounts, given = running.policies.accounts, running.policies.given
            for share in gpus_view.shares(given, accounts, self.db, names):
                shares.append(share)
                await turn.end_if_long()
        for node in taken.nodes:
            nodes.append(gpus_view.node(node, names))
            await turn.end_if_long()
        found = await holders(running, self.db, turn, self.use.use_of, self.use.census)
        await asyncio.sleep(0)  # sorting takes as long as a turn
        stops = holds_for_all(self, "delete:servers")
        query, now = Query.read(self.get_query_argument), datetime.now(UTC)
        servers = gpus_view.servers(found, query, page, now, stops=stops)
        await turn.end_if_long()
        refusals = self.use.record.refusals(time.time())
        return ForAdministrators(refusals, tuple(nodes), tuple(shares), servers)


class GpusHandler(FiguresHandler):
    """Serves the page."""

    _questions = Questions()

    async def show(self, figures: str) -> None:
        """Send the figures in the hub's own frame."""
        template = self.settings["jinja2_env"].from_string(_PAGE)
        names = self.template_namespace
        said = {"gpuspawner_title": _("GPUs"), "gpuspawner_figures": figures}
        self.finish(await template.render_async(**names, **said))


class GpusStreamHandler(OfHubUse, StreamHandler):
    """Tells an open page that something has changed, but not what."""

    _questions = Questions()

    async def _form(self, user_name: str, server_name: str) -> OpenForm:  # noqa: ARG002
        return OpenFigures(self.use, sees_names=sees_names(self))


class OpenFigures:
    """As `OpenForm`; *sees_names* as the function says of who has opened the page.

    *clock* returns seconds since the epoch.
    """

    may_change = False

    def __init__(
        self, use: "HubUse", *, sees_names: bool, clock: Callable[[], float] = time.time
    ) -> None:
        self.use = use
        self._clock = clock
        self._sees_names = sees_names

    async def renew(self) -> None:
        """As `OpenForm.renew`."""

    def question(self) -> Hashable:
        """As `OpenForm.question`: pages that show the same figures have the same question."""
        return OpenFigures, self._sees_names

    async def answer(self) -> Shown:
        """As `OpenForm.answer`."""
        use, running = self.use, self.use.running
        await use.census.take()
        line, health = running.preflight.line, running.view.health()
        waiting = len(line), frozenset(line.waiting().items())
        age = health.age // _MINUTE if isinstance(health, Stale) else 0
        found: tuple[Hashable, ...] = use.census.version, waiting, type(health), age
        if self._sees_names:  # all others would ask in vain for what they don't see
            found += (self._clock() // _MINUTE,)  # how long servers have run, and not been used
            used = running.accounts.usage.version if running.accounts is not None else 0
            last = use.record.facts[-1].at if use.record.facts else 0.0
            computed = use.watch.version if use.watch is not None else 0
            found += used, last, computed, use.census.starting
        return Shown({"is": str(hash(found))})


class StopHolderHandler(OfHubUse, StopHandler):
    """Stops a server for a button of the page."""

    _questions = Questions()

    def back(self, user: User) -> str:  # noqa: ARG002, for other pages
        """As `StopHandler.back`: what was asked for before."""
        page = Query.read(self.get_body_argument).address(gpus(self.hub.base_url))
        return f"{page}#servers"


HANDLERS = (
    (GPUS, GpusHandler),
    (FIGURES, FiguresHandler),
    (GPUS_STREAM, GpusStreamHandler),
    (GPUS_STOP, StopHolderHandler),
)


def serve(hub: Any, use: "HubUse") -> None:
    """Add the page to a hub, and a link to it to the hub's navigation."""
    add_handlers(hub, [(path, handler, {"use": use}) for path, handler in HANDLERS])
    add_templates(hub, str(Path(__file__).parent / "templates"))
