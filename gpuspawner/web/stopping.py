"""Stops one's own server from the spawn form, and comes back to the form."""

import time
from urllib.parse import quote

from jupyterhub.handlers import BaseHandler
from jupyterhub.scopes import needs_scope
from tornado import web

from gpuspawner import runtime
from gpuspawner.gates.host import Host
from gpuspawner.policies.accounts import Accounts
from gpuspawner.web.form.addresses import USAGE

_PATIENCE = 5.0
"""How long the form waits until its figures don't count the stopped server, in seconds."""


class StopHandler(BaseHandler):  # type: ignore[misc]
    """Stops a server for a button of the form."""

    @needs_scope("delete:servers")  # type: ignore[untyped-decorator, unused-ignore]
    async def post(self, user_name: str, server_name: str) -> None:
        """Stop the server, and send the browser back to the form."""
        user = self.find_user(user_name)
        if user is None:
            raise web.HTTPError(404, "No such user")
        spawner = user.spawners.get(server_name)
        if spawner is not None and spawner.ready:
            await self.stop_single_user(user, server_name)
            await _until_not_counted(runtime.current(spawner).accounts, spawner)
        form = self.get_query_argument("form", "")
        names = [user.name, form] if form else [user.name]
        path = "/".join(quote(name, safe="") for name in names)
        # The fragment moves the focus to the figures, which have changed.
        self.redirect(f"{self.hub.base_url}spawn/{path}#{USAGE}")


async def _until_not_counted(accounts: Accounts, spawner: Host) -> None:
    """Wait a moment until the hub sees that the pod is gone: KubeSpawner may see it earlier."""
    key = (spawner.namespace, spawner.pod_name)
    deadline = time.monotonic() + _PATIENCE
    while accounts.usage.shows(key):
        if not await accounts.following.changed(deadline - time.monotonic()):
            return
