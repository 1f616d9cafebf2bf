"""The page of somebody who waits in line: what is free instead, and a way to leave.

Only hubs with a line load it.
"""

import time
from asyncio import sleep
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

from jupyterhub.handlers import BaseHandler
from jupyterhub.scopes import needs_scope
from tornado import web
from tornado.httputil import url_concat

from gpuspawner import runtime
from gpuspawner.compat.pages import add_handlers, has_handler
from gpuspawner.form.addresses import LINE, line, live, pending, spawn
from gpuspawner.form.alternative_button import INSTEAD
from gpuspawner.form.render import render_line
from gpuspawner.form.view_builder import buttons, profile_buttons
from gpuspawner.form.view_model import Button, LineView
from gpuspawner.start.host import set_locale
from gpuspawner.web.rate_limits import Questions, counted

if TYPE_CHECKING:
    from gpuspawner.line.in_line import InLine

_PAGE = """{% extends "page.html" %}
{% block main %}
<div class="container"><div class="row justify-content-center"><div class="col-md-8">
<form method="post" action="{{ gpuspawner_action }}">
<input type="hidden" name="_xsrf" value="{{ gpuspawner_xsrf }}">
{{ gpuspawner_line | safe }}
</form>
</div></div></div>
{% endblock %}
"""
_PATIENCE = 5.0
"""How long the browser waits until the hub has ended the start, in seconds."""


class LineHandler(BaseHandler):  # type: ignore[misc]
    """Serves the page, and its buttons."""

    _questions = Questions()

    @web.authenticated  # else, somebody who has logged out would read that it is forbidden
    @needs_scope("servers")  # type: ignore[untyped-decorator, unused-ignore]
    async def get(self, user_name: str, server_name: str) -> None:
        """Show the place, and what is free instead."""
        async with counted(self._questions, user_name):
            spawner = self._spawner(user_name, server_name)
            place = _wait(spawner)
            if place is None or not place.is_on:
                self.redirect(spawn(spawner))
                return
            if self.current_user == spawner.user:
                place.see()
            token = self.xsrf_token.decode("ascii")
            shown = render_line(
                LineView(
                    place.said.text,
                    await _others(place, spawner),
                    url_concat(spawner.user.progress_url(spawner.name), {"_xsrf": token}),
                    pending(spawner),
                    live(spawner, "line.js"),
                )
            )
            template = self.settings["jinja2_env"].from_string(_PAGE)
            self.set_header("Cache-Control", "no-store")
            self.finish(
                await template.render_async(
                    **self.template_namespace,
                    gpuspawner_action=line(spawner),
                    gpuspawner_xsrf=token,
                    gpuspawner_line=shown,
                )
            )

    @needs_scope("delete:servers")  # type: ignore[untyped-decorator, unused-ignore]
    async def post(self, user_name: str, server_name: str) -> None:
        """Leave the line; go to the form, or start what was chosen instead if it is still free."""
        async with counted(self._questions, user_name):
            spawner = self._spawner(user_name, server_name)
            place = _wait(spawner)
            if place is None:
                self.redirect(spawn(spawner))
                return
            chosen = self.get_body_argument(INSTEAD, "")
            if chosen and chosen not in [it.value for it in await _others(place, spawner)]:
                self.redirect(line(spawner))
                return
            if not place.leave():  # the server starts already, or nobody waits
                self.redirect(spawn(spawner))
                return
            await _until_ended(spawner)
            fields = parse_qsl(chosen, keep_blank_values=True)
            query = urlencode([(f"opt-{name}", value) for name, value in fields])
            self.redirect(f"{spawn(spawner)}?{query}" if query else spawn(spawner))

    def _spawner(self, user_name: str, server_name: str) -> Any:
        """Return a server, or raise 404; each user has a default server.

        From here on, this request is answered in its sender's language, also for who leaves.
        """
        user = self.find_user(user_name)
        if user is None or (server_name and server_name not in user.spawners):
            raise web.HTTPError(404, "No such server")
        spawner = user.spawners[server_name]
        set_locale(spawner, self)
        return spawner


def _wait(spawner: Any) -> "InLine | None":
    """Return the wait of the current start; None in a hub without a line."""
    has_line = runtime.current(spawner).line is not None
    return spawner.gpuspawner_gates.turn if has_line else None


async def _others(place: "InLine", spawner: Any) -> tuple[Button, ...]:
    told = await place.instead()
    return *buttons(told, runtime.current(spawner).offers), *profile_buttons(told)


async def _until_ended(spawner: Any) -> None:
    """Wait until the hub has ended a start; it tells nobody."""
    deadline = time.monotonic() + _PATIENCE
    while spawner.pending and time.monotonic() < deadline:  # noqa: ASYNC110, see above
        await sleep(0.1)


HANDLERS = ((LINE, LineHandler),)


def serve(hub: Any) -> None:
    """Add the page to a `JupyterHub`, once."""
    if not has_handler(hub, LINE):
        add_handlers(hub, HANDLERS)
