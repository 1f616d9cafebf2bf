"""The addresses on a form, for whoever it is drawn."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from tornado import web
from tornado.httpclient import AsyncHTTPClient
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port

from gpuspawner import language
from gpuspawner.form import addresses
from gpuspawner.launch.hub_pages import announce
from gpuspawner.start.host import set_locale


class Form(web.RequestHandler):
    """Draws the form as the hub does, which lets a spawner keep the handler of the last GET."""

    def initialize(self, spawner: Any) -> None:
        self.spawner = spawner

    def get(self) -> None:
        self.spawner.handler = self
        self.draw()

    def post(self) -> None:
        self.draw()

    def draw(self) -> None:
        set_locale(self.spawner)
        self.write(f"{language.language_tag()} {addresses.stop(self.spawner, 'train')}")


@pytest.mark.parametrize("was_open", [True, False], ids=["somebody-else-opened-it", "nobody-did"])
async def test_a_redrawn_form_has_the_token_and_the_language_of_who_has_sent_it(
    was_open: bool, hub_with, monkeypatch
) -> None:
    monkeypatch.setattr(addresses, "live", lambda _spawner: object())
    spawner, tasks = hub_with().spawner(), []
    hub = SimpleNamespace(template_vars={}, tornado_application=None)
    hub.tornado_application = web.Application([("/", Form, {"spawner": spawner})])
    announce(hub, SimpleNamespace(run=lambda it: tasks.append(asyncio.create_task(it))), "")
    await asyncio.gather(*tasks)
    socket, port = bind_unused_port()
    serving = HTTPServer(hub.tornado_application)
    serving.add_sockets([socket])

    async def fetch(query: str, tag: str, **more: Any) -> str:
        url, headers = f"http://127.0.0.1:{port}/{query}", {"Accept-Language": tag}
        answer = await AsyncHTTPClient().fetch(url, headers=headers, **more)
        return answer.body.decode()

    theirs = await fetch("", "zh-CN") if was_open else ""
    mine = await fetch("?_xsrf=mine", "en", method="POST", body="")
    serving.stop()

    assert mine == "en /hub/gpuspawner/stop/alice/train?form=&_xsrf=mine"
    assert ("&_xsrf=" in theirs) is was_open
