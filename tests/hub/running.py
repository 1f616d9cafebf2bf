"""A real JupyterHub in a process of its own, and clients of its pages and of its REST API."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import requests

from localcluster.binaries import proxy
from localcluster.ports import free_ports
from tests.hub.pods import Pods
from tests.waiting import wait_for

ROOT = Path(__file__).parents[2]
API_TOKEN = "the-tests-own-token"

# Only what a hub on this machine needs; what a test is about stands in the test.
BASE_CONFIGURATION = """
c = get_config()
c.JupyterHub.bind_url = "http://127.0.0.1:{public}"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{hub}"
c.JupyterHub.hub_connect_ip = "127.0.0.1"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy_api}"
c.ConfigurableHTTPProxy.command = {proxy_command!r}
c.ConfigurableHTTPProxy.pid_file = "{folder}/proxy.pid"
c.JupyterHub.db_url = "sqlite:///{folder}/hub.sqlite"
c.JupyterHub.cookie_secret_file = "{folder}/cookie_secret"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.Authenticator.admin_users = {{"admin"}}
c.JupyterHub.services = [{{"name": "tests", "api_token": "{token}"}}]
c.JupyterHub.load_roles = [
    {{"name": "tests", "services": ["tests"],
      "scopes": ["admin:users", "admin:servers", "admin:groups"]}},
]
"""


@dataclass
class Page:
    """An answer of the hub to a browser."""

    status: int
    url: str
    html: str

    @property
    def chosen(self) -> dict[str, str]:
        """What the spawn form would send if it were submitted as it is."""
        fields = _Fields()
        fields.feed(self.html)
        return fields.chosen

    @property
    def text(self) -> str:
        without_scripts = re.sub(r"<(script|style)\b.*?</\1>", " ", self.html, flags=re.DOTALL)
        return " ".join(unescape(re.sub(r"<[^>]+>", " ", without_scripts)).split())


class _Fields(HTMLParser):
    """Collects radio buttons that are checked and options that are selected."""

    def __init__(self) -> None:
        super().__init__()
        self.chosen: dict[str, str] = {}
        self._select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "select":
            self._select = attributes["name"] or ""
        elif tag == "option" and ("selected" in attributes or self._select not in self.chosen):
            self.chosen[self._select] = attributes["value"] or ""
        elif tag == "input" and attributes.get("type") == "radio" and "checked" in attributes:
            self.chosen[attributes["name"] or ""] = attributes["value"] or ""


@dataclass
class Person:
    """Somebody who has logged in with a browser."""

    hub: RunningHub
    name: str
    session: requests.Session = field(default_factory=requests.Session)

    def log_in(self) -> Person:
        self.session.trust_env = False
        self.session.get(f"{self.hub.url}/hub/login")
        answer = self.session.post(
            f"{self.hub.url}/hub/login?next=%2Fhub%2Fhome",
            data={"username": self.name, "password": "x", "_xsrf": self.xsrf},
        )
        assert answer.status_code == 200, answer.text
        return self

    def open(self, path: str) -> Page:
        return self._page(self.session.get(f"{self.hub.url}{path}"))

    def submit(
        self, form: Mapping[str, Any] | None = None, *, server: str = "", redirects: bool = True
    ) -> Page:
        """Press Start on the spawn form, filled in with *form*."""
        path = f"/hub/spawn/{self.name}/{server}".rstrip("/")
        self.session.get(f"{self.hub.url}/hub/home")
        return self._page(
            self.session.post(
                f"{self.hub.url}{path}?_xsrf={self.xsrf}",
                data=dict(form or {"from": "form"}),
                headers={"Referer": f"{self.hub.url}/hub/spawn"},
                allow_redirects=redirects,
            )
        )

    @property
    def xsrf(self) -> str:
        cookies = self.session.cookies
        return next(c.value or "" for c in cookies if (c.name, c.path) == ("_xsrf", "/hub/"))

    def _page(self, answer: requests.Response) -> Page:
        return Page(answer.status_code, answer.url, answer.content.decode())


class RunningHub:
    """A JupyterHub process, its address and its log.

    Attributes:
        pods: The pods of its namespace; asking for them is an error where it has none.
    """

    pods: Pods

    def __init__(
        self, process: subprocess.Popen[bytes], url: str, log: Path, pods: Pods | None
    ) -> None:
        self.process = process
        self.url = url
        if pods is not None:
            self.pods = pods
        self._log = log
        self._api = requests.Session()
        self._api.trust_env = False
        self._api.headers["Authorization"] = f"token {API_TOKEN}"

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def lives(self) -> bool:
        return self.process.poll() is None

    def person(self, name: str) -> Person:
        return Person(self, name).log_in()

    def api(self, method: str, path: str, body: object = None, **more: Any) -> requests.Response:
        """Call the REST API as an administrator's script does; *body* None sends no body."""
        data = None if body is None else json.dumps(body)
        return self._api.request(method, f"{self.url}/hub/api{path}", data=data, **more)

    def start(self, user: str, options: object = None) -> requests.Response:
        """Start *user*'s server by REST, who is made where unknown."""
        self.api("POST", f"/users/{user}")
        return self.api("POST", f"/users/{user}/server", options)

    def stop(self, user: str) -> None:
        self.api("DELETE", f"/users/{user}/server")
        wait_for(lambda: not self.api("GET", f"/users/{user}").json()["servers"])

    def server(self, user: str) -> dict[str, Any]:
        """*user*'s default server as the REST API shows it; empty while there is none."""
        servers: dict[str, dict[str, Any]] = self.api("GET", f"/users/{user}").json()["servers"]
        return servers.get("", {})

    def until_ready(self, user: str) -> dict[str, Any]:
        return wait_for(lambda: (s := self.server(user)).get("ready") and s, timeout=60)

    def events_end(self, user: str) -> None:
        """Wait until *user*'s start has come to an end, good or bad."""
        wait_for(lambda: self.server(user).get("pending") != "spawn")

    def events(self, user: str) -> list[dict[str, Any]]:
        """What the progress stream of *user*'s server tells until it closes."""
        answer = self.api("GET", f"/users/{user}/server/progress", stream=True)
        lines = answer.iter_lines(decode_unicode=True)
        return [json.loads(line[len("data:") :]) for line in lines if line.startswith("data:")]


@contextmanager
def running_hub(
    folder: Path,
    configuration: str,
    *,
    environment: Mapping[str, str] | None = None,
    pods: Pods | None = None,
) -> Iterator[RunningHub]:
    """Run a hub with the lines of *configuration* until the block ends.

    Raises:
        AssertionError: The hub ended before it served; its log is the message.
    """
    public, hub, proxy_api = free_ports(3)
    base = BASE_CONFIGURATION.format(
        public=public,
        hub=hub,
        proxy_api=proxy_api,
        proxy_command=[str(proxy() / "configurable-http-proxy")],
        folder=folder,
        token=API_TOKEN,
    )
    (folder / "jupyterhub_config.py").write_text(base + configuration)
    log = folder / "hub.log"
    with log.open("wb") as output:
        process = start_hub_process(folder, output, environment or {})
    running = RunningHub(process, f"http://127.0.0.1:{public}", log, pods)
    try:
        # The hub before the proxy, which writes ten lines for each try until then.
        for address in (f"http://127.0.0.1:{hub}", running.url):
            wait_for(lambda at=address: not running.lives or _serves(at), timeout=120)
            assert running.lives, running.log
        yield running
    finally:
        _end(process)


def start_hub_process(
    folder: Path, output: Any, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "jupyterhub", "--config", str(folder / "jupyterhub_config.py")],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PATH": f"{proxy()}{os.pathsep}{os.environ['PATH']}",
            **environment,
        },
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def _serves(url: str) -> bool:
    try:
        return requests.get(f"{url}/hub/health", timeout=5).ok
    except requests.ConnectionError:
        return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM lets the hub stop its proxy and its servers; its own session has the rest."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
