"""How answers that no hub gives are told."""

from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from gpuspawner.doctor.hub_api import HubApi, HubApiError, NoHubError


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/hub/api", "hub:8081", "ftp://hub/hub/api"])
async def test_an_address_without_a_server_is_named(url):
    with pytest.raises(NoHubError, match=f"{url} doesn't answer: "):
        await HubApi(url, "a-token").ask("GET", "/users/alice")


EVENTS = b"""data: {"message": "Starting"}

data: {"message": "Starting"}

data: {"message": "Ready", "ready": true}

"""


class Page(BaseHTTPRequestHandler):
    """A page of another program."""

    def do_GET(self):
        """Answer with a page, with an error, or with the events of a start."""
        status = 418 if self.path == "/teapot" else 200
        self.send_response(status)
        self.end_headers()
        self.wfile.write(EVENTS if self.path == "/progress" else b"<html>")

    def log_message(self, *_):
        """Log nothing."""


@pytest.fixture
def another():
    """The address of another program's server."""
    with HTTPServer(("127.0.0.1", 0), Page) as server:
        Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


async def test_an_address_of_another_program_is_named(another):
    with pytest.raises(NoHubError, match="isn't the address of a hub's REST API"):
        await HubApi(another, "a-token").ask("GET", "/users/alice")


async def test_an_error_without_a_message_of_the_hub_has_that_of_its_status(another):
    with pytest.raises(HubApiError, match="HTTP 418: I'm a Teapot") as raised:
        await HubApi(another, "a-token").ask("GET", "/teapot")

    assert raised.value.status == 418


async def test_a_message_that_comes_again_is_told_once(another):
    told = []

    assert (await HubApi(another, "a-token").follow("/progress", told.append))["ready"]
    assert told == ["Starting", "Ready"]
