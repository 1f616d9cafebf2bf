"""The hub's addresses about the use of GPUs: for the culler, for owners, and for the report."""

import asyncio
from typing import Any

import msgspec
from jupyterhub.handlers import BaseHandler
from jupyterhub.scopes import needs_scope
from markupsafe import Markup
from tornado import web

from gpuspawner.compat.jupyterhub import running
from gpuspawner.compat.pages import add_handlers
from gpuspawner.form.addresses import KEEP, REPORT, USED, keep
from gpuspawner.messages import idle, in_language
from gpuspawner.start.host import set_locale
from gpuspawner.use.gpu_use_config import READ_USE
from gpuspawner.use.record import Record, report
from gpuspawner.use.watching import UseWatch, Watched, key_of
from gpuspawner.web.handlers import Answering
from gpuspawner.web.rate_limits import Questions, counted

_PAGE = """{% extends "page.html" %}
{% block title %}{{ gpuspawner_heading }}{% endblock title %}
{% block main %}
<div class="container"><div class="row justify-content-center"><div class="col-md-8">
<form method="post">
<input type="hidden" name="_xsrf" value="{{ gpuspawner_xsrf }}">
<h1>{{ gpuspawner_heading }}</h1>
<p class="lead">{{ gpuspawner_said }}</p>
{% if gpuspawner_explained %}<p>{{ gpuspawner_explained }}</p>{% endif %}
{% if gpuspawner_keep %}
<button type="submit" class="btn btn-jupyter">{{ gpuspawner_keep }}</button>
{% endif %}
</form>
</div></div></div>
{% endblock %}
"""


def _check_scope(handler: Any) -> None:
    """Let only those in who may read the use of all servers.

    Not by `needs_scope`: when this module is imported, that knows the hub's own scopes only.

    Raises:
        HTTPError: 403.
    """
    if READ_USE not in handler.expanded_scopes:
        raise web.HTTPError(403, "The scope %s is missing", READ_USE)


class ReportHandler(Answering):
    """Serves the numbers of `gpuspawner report`; they name nobody."""

    def initialize(self, record: Record) -> None:
        """Take over what has happened."""
        self._record = record

    async def get(self) -> None:
        """Send them."""
        _check_scope(self)
        # In a thread: there may be tens of thousands of facts.
        found = await asyncio.to_thread(report, list(self._record.facts))
        self.answer(msgspec.to_builtins(found))


class UsedHandler(Answering):
    """Serves which servers use their GPUs, by the URLs that the hub's REST API has for servers."""

    def initialize(self, watch: UseWatch) -> None:
        """Take over what is known."""
        self._watch = watch

    async def get(self) -> None:
        """Send what is known of each server with a GPU.

        Raises:
            HTTPError: 503 if the hub can't tell which these are: then the culler stops nothing.
        """
        _check_scope(self)
        if not self._watch.sees_pods:
            raise web.HTTPError(503, "The hub can't see the pods of its servers right now")
        found = {_url(it): self._of(it) async for it in self._watch.standings()}
        self.answer({"servers": found})

    def _of(self, it: Watched) -> dict[str, object]:
        return {
            "use": it.state,
            "stays": it.stays,
            # Only a policy gives a server back; without one, the culler's own rule holds.
            "stop": self._watch.may_stop(it) if it.rule else None,
            "stops_in_seconds": self._watch.stops_in(it),
        }


def _url(it: Watched) -> str:
    url: str = it.spawner.user.server_url(it.spawner.name)
    return url


class KeepHandler(BaseHandler):  # type: ignore[misc]
    """Serves the page on which an owner keeps a server."""

    _questions = Questions()

    def initialize(self, watch: UseWatch) -> None:
        """Take over what is known."""
        self._watch = watch

    @web.authenticated
    @needs_scope("servers")  # type: ignore[untyped-decorator, unused-ignore]
    async def get(self, user_name: str, server_name: str) -> None:
        """Show what will become of the server."""
        async with counted(self._questions, user_name):
            await self._show(user_name, server_name)

    @needs_scope("servers")  # type: ignore[untyped-decorator, unused-ignore]
    async def post(self, user_name: str, server_name: str) -> None:
        """Keep the server, and show the page again."""
        async with counted(self._questions, user_name):
            if (it := self._its(user_name, server_name)) is not None:
                self._watch.keep(it.key)
            self.redirect(self.request.uri or "")

    def _its(self, user_name: str, server_name: str) -> Watched | None:
        spawner = running(self.find_user(user_name)).get(server_name)
        return self._watch.about(spawner) if spawner is not None else None

    async def _show(self, user_name: str, server_name: str) -> None:
        it = self._its(user_name, server_name)
        if it is None:
            raise web.HTTPError(404, "No such server with a GPU")
        set_locale(it.spawner, self)
        left = self._watch.stops_in(it)
        template = self.settings["jinja2_env"].from_string(_PAGE)
        self.set_header("Cache-Control", "no-store")
        said = idle.stays(server_name, self._watch.kept_for(it))
        if left is not None and it.use is not None:
            said = idle.will_be_stopped(server_name, it.gpus, it.use.seconds, left)
        self.finish(
            await template.render_async(
                **self.template_namespace,
                gpuspawner_xsrf=self.xsrf_token.decode("ascii"),
                gpuspawner_heading=idle.heading(),
                gpuspawner_said=said,
                **self._button(it),
            )
        )

    def _button(self, it: Watched) -> dict[str, str]:
        """Return the button that keeps a server, and what it does."""
        if it.rule is None or it.standing.stops_at is None or self._watch.may_stop(it):
            return {}
        if not self._watch.may_keep(it):
            return {"gpuspawner_explained": idle.kept_too_often()}
        left = it.rule.keeps - it.standing.kept
        explained = idle.keeps(it.rule.kept, left)
        return {"gpuspawner_keep": idle.keep_it(), "gpuspawner_explained": explained}


def serve(hub: Any, record: Record, watch: UseWatch | None) -> None:
    """Add the handlers to those of a `JupyterHub`; *watch* is None if nobody knows of use."""
    add_handlers(hub, ((REPORT, ReportHandler, {"record": record}),))
    if watch is not None:
        its = {"watch": watch}
        add_handlers(hub, ((USED, UsedHandler, its), (KEEP, KeepHandler, its)))


def told(watch: UseWatch, user: Any) -> Markup:
    """Tell a user of servers that don't use their GPUs, and where those are kept that will stop."""
    if user is None:
        return Markup()
    # Only the user's own: each page asks, and there may be thousands of others.
    its = (watch.find(key_of(it)) for _, it in sorted(running(user).items()))
    return in_language(Markup("<br>").join(said for it in its if it and (said := _told(watch, it))))


def _told(watch: UseWatch, it: Watched) -> Markup:
    name, left = it.server[1], watch.stops_in(it)
    if it.use is None or it.use.is_used:
        return Markup()
    if left is None:  # with a rule, its owner keeps it and knows
        return Markup() if it.rule else idle.unused(name, it.gpus, it.use.seconds)
    return idle.warned(name, it.gpus, it.use.seconds, left, keep(it.spawner))
