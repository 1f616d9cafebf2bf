"""A real JupyterHub in a process of its own, and clients for its pages and its REST API."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import requests

from localcluster.processes import kill_with_children
from tests.hub.people import Person
from tests.hub.pods import Pods
from tests.hub.process import ROOT, start_hub_process
from tests.hub.proxy import TOKEN, lent_proxy
from tests.waiting import wait_for

API_TOKEN = "the-tests-own-token"
_SHOWN = 10_000
"""How many characters of the log of a hub are shown if something fails while it runs."""

# What the log says when the first list is complete.
_SEEN = "The view of the cluster is live."

_ERROR = re.compile(r"\[[EC] |Traceback|Exception ignored")
# JupyterHub removes the route of a server that is stopped before it has one.
_HARMLESS = re.compile(r"\[E .* api_request to proxy failed: (HTTP )?404\b")

# How many lines of the log explain why a start has failed.
_LINES_TO_SHOW = 60

# Seconds until a start must have got on; a stream without events has an empty line every 8 s.
_PATIENCE = 120.0

# The minimum for a hub on this machine; each test adds the lines that it is about.
BASE_CONFIGURATION = """
c = get_config()
c.JupyterHub.bind_url = "http://127.0.0.1:{public}"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{hub}"
c.JupyterHub.hub_connect_ip = "127.0.0.1"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy_api}"
c.ConfigurableHTTPProxy.auth_token = "{proxy_token}"
c.ConfigurableHTTPProxy.should_start = False
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


class RunningHub:
    """A JupyterHub process, its address and its log.

    Args:
        folder: The folder of its configuration, its database and its log.
        url: The address for users, at the proxy.
        direct: The hub's own address, behind the proxy.
        environment: Additions to the tests' own environment.
        pods: The pods of its namespace, if it has one.

    Attributes:
        url: As above.
        direct: As above.
        is_as_configured: Whether no test has changed its configuration or its database.
        pods: The pods of its namespace; missing if it has none.
    """

    pods: Pods

    def __init__(
        self,
        folder: Path,
        url: str,
        direct: str,
        environment: Mapping[str, str],
        pods: Pods | None,
    ) -> None:
        self.url = url
        if pods is not None:
            self.pods = pods
        self._folder = folder
        self.direct = direct
        self._environment = environment
        self.is_as_configured = True
        self._log_begins = 0
        self._expected: list[str] = []
        self._api = _administrator()
        # A proxy may close an idle connection at the moment when a request reuses it.
        self._api.headers["Connection"] = "close"
        (folder / "hub.log").touch()
        self.begin()

    def begin(self) -> None:
        """Start the process; it is ready only after `until_it_serves`."""
        self._seen = self._whole_log.count(_SEEN)
        self._looking = _administrator()
        self.process = start_hub_process(self._folder, self._environment)

    def until_it_serves(self) -> None:
        """Wait for the hub, then for the proxy's route; the proxy logs earlier requests as errors.

        Raises:
            AssertionError: The hub has ended; the message ends as its log does.
        """
        for address in (self.direct, self.url):
            self._until(partial(_serves, address))

    def until_it_sees_the_cluster(self) -> None:
        """Wait for the first list; until then nothing is refused, and no figures are known."""
        self._until(lambda: self._whole_log.count(_SEEN) > self._seen)

    def _until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition, or for the hub's end, which is an error."""
        wait_for(lambda: not self.lives or condition(), timeout=_PATIENCE)
        assert self.lives, f"The hub has ended:\n{self._end_of_log()}"

    def end(self) -> None:
        """Terminate the hub, which stops its servers; kill the processes that it leaves."""
        # JupyterHub says that it ends, and cuts the streams of starts.
        self.expect_errors("Received signal", "/server/progress", "Cannot send error response")
        if self.lives:
            self.process.terminate()
            self.process.join(120)
        if self.lives:
            self.kill()

    def kill(self) -> None:
        """Kill the hub, which has no time to tidy up, and its services."""
        if self.process.pid is not None:
            kill_with_children(self.process.pid)
        self.process.join()

    def reconfigure(self, *lines: str) -> None:
        """Restart the hub with more lines before the last one of its configuration."""
        *others, last = self.configuration.rstrip().splitlines()
        self.write_configuration("\n".join([*others, *lines, last, ""]))
        self._begin_again()

    @property
    def configuration(self) -> str:
        """Its whole configuration."""
        return (self._folder / "jupyterhub_config.py").read_text()

    def write_configuration(self, text: str) -> None:
        """End the hub, and write the whole configuration that it begins with next."""
        self.is_as_configured = False
        self.end()
        (self._folder / "jupyterhub_config.py").write_text(text)

    def change_database(self, statement: str, *values: object) -> None:
        """Restart the hub, with its database changed by SQL in between."""
        self.is_as_configured = False
        self.end()
        with closing(sqlite3.connect(self.database)) as database, database:
            database.execute(statement, values)
        self._begin_again()

    def _begin_again(self) -> None:
        self.begin()
        self.until_it_serves()
        if self._seen:  # and so it will again
            self.until_it_sees_the_cluster()

    @property
    def database(self) -> Path:
        """The file of its database."""
        return self._folder / "hub.sqlite"

    @property
    def log(self) -> str:
        """Its log, since the test began that has it."""
        with (self._folder / "hub.log").open("rb") as log:
            log.seek(self._log_begins)
            return log.read().decode(errors="replace")

    @property
    def _whole_log(self) -> str:
        return (self._folder / "hub.log").read_text(errors="replace")

    def begin_test(self) -> None:
        """Note that another test begins: it neither reads nor answers for earlier lines."""
        self._log_begins = (self._folder / "hub.log").stat().st_size
        self._expected = []

    def expect_errors(self, *parts: str) -> None:
        """Let the log have errors with one of these words until the test ends."""
        self._expected += parts

    def unexpected_errors(self) -> list[str]:
        """The lines of the log that begin an error which the test doesn't expect."""
        lines = self.log.splitlines()
        errors = [it for it in lines if _ERROR.match(it) and not _HARMLESS.match(it)]
        return [it for it in errors if not any(part in it for part in self._expected)]

    @property
    def lives(self) -> bool:
        return self.process.is_alive()

    def command(self, *arguments: str, token: str = API_TOKEN) -> subprocess.Popen[str]:
        """Begin a command of gpuspawner as in the hub's pod: with its configuration and rights."""
        location = {"JUPYTERHUB_API_URL": f"{self.direct}/hub/api", "JUPYTERHUB_API_TOKEN": token}
        return subprocess.Popen(
            [sys.executable, "-m", "gpuspawner", *arguments],
            cwd=self._folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), **self._environment, **location},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Whoever runs the tests in the background may ignore Ctrl-C, and children inherit that.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        )

    def person(self, name: str) -> Person:
        return Person(self, name).log_in()

    def api(self, method: str, path: str, body: object = None, **more: Any) -> requests.Response:
        """Call the REST API as an administrator's script does; *body* None sends no body."""
        data = None if body is None else json.dumps(body).encode()
        return self.raw(method, path, data, **more)

    def raw(self, method: str, path: str, body: bytes | None, **more: Any) -> requests.Response:
        """Call the REST API with a body that may not be JSON."""
        return self._api.request(method, f"{self.url}/hub/api{path}", data=body, **more)

    def start(self, user: str, options: object = None) -> requests.Response:
        """Start *user*'s server by REST; create the user if needed."""
        self.api("POST", f"/users/{user}")
        return self.api("POST", f"/users/{user}/server", options)

    def stop(self, user: str) -> None:
        self.api("DELETE", f"/users/{user}/server")
        wait_for(lambda: not self.server(user))

    def server(self, user: str) -> dict[str, Any]:
        """*user*'s default server as the REST API shows it; empty if there is none."""
        # Tests wait with this, so it costs little: a kept connection, past the proxy.
        answer = self._looking.get(f"{self.direct}/hub/api/users/{user}")
        servers: dict[str, dict[str, Any]] = answer.json()["servers"]
        return servers.get("", {})

    def until_ready(self, user: str) -> dict[str, Any]:
        """Wait until *user*'s server is ready, and return it as `server` does.

        The hub must have answered the request to start it. From then on it shows the server, until
        it has stopped the server of a failed start.

        Raises:
            AssertionError: The start has failed; the message ends as the hub's log does.
        """

        def ready() -> dict[str, Any] | None:
            for _ in self.follow(user):
                pass
            server = self.server(user)
            assert server, f"{user}'s server didn't start:\n{self._end_of_log()}"
            return server if server.get("ready") else None

        return wait_for(ready, timeout=_PATIENCE)

    def _end_of_log(self) -> str:
        """The last lines of the log, without those about questions such as that of `server`."""
        lines = [line for line in self.log.splitlines() if " 200 GET /hub/api/users/" not in line]
        return "\n".join(lines[-_LINES_TO_SHOW:])

    def start_until_ready(self, user: str, options: object = None) -> dict[str, Any]:
        """Start *user*'s server, wait until it is ready, and return it as `server` does."""
        answer = self.start(user, options)
        assert answer.status_code in {201, 202}, answer.text
        return self.until_ready(user)

    def events_end(self, user: str) -> None:
        """Wait until *user*'s start has ended, whether it failed or not.

        The hub stops the server of a failed start; its pod may be there until it has done so.
        """
        for _ in self.follow(user):
            pass
        wait_for(lambda: not self.server(user).get("pending"))

    def events(self, user: str) -> list[dict[str, Any]]:
        """Return the events of *user*'s progress stream, until it closes.

        While the hub stops the server of a failed start, it answers that nothing starts; only
        after that, the stream has the reason.
        """
        return wait_for(lambda: list(self.follow(user)))

    def follow(self, user: str, **more: Any) -> Iterator[dict[str, Any]]:
        """Yield the events of *user*'s progress stream as they come, until it closes.

        Raises:
            TimeoutError: None has come for long.
        """
        with self.api("GET", f"/users/{user}/server/progress", stream=True, **more) as answer:
            last = time.monotonic()
            for line in answer.iter_lines(chunk_size=1):
                if line.startswith(b"data:"):
                    last = time.monotonic()
                    yield json.loads(line[len(b"data:") :])
                elif time.monotonic() - last > _PATIENCE:
                    raise TimeoutError(f"no event of {user}'s start for {_PATIENCE:g} s")


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
        AssertionError: The hub ended before it served; the message ends as its log does.
        LocalClusterError: Its proxy did not start.
    """
    with lent_proxy(folder) as proxy:
        base = BASE_CONFIGURATION.format(
            public=proxy.public,
            hub=proxy.hub,
            proxy_api=proxy.api,
            proxy_token=TOKEN,
            folder=folder,
            token=API_TOKEN,
        )
        (folder / "jupyterhub_config.py").write_text(base + configuration)
        public, direct = (f"http://127.0.0.1:{port}" for port in (proxy.public, proxy.hub))
        running = RunningHub(folder, public, direct, environment or {}, pods)
        try:
            running.until_it_serves()
            yield running
        except BaseException:
            print(running.log[-_SHOWN:])  # pytest shows it with what failed
            raise
        finally:
            running.end()


def _administrator() -> requests.Session:
    """Make a session that calls the REST API as an administrator's script does."""
    session = requests.Session()
    session.trust_env = False
    session.headers["Authorization"] = f"token {API_TOKEN}"
    return session


def _serves(url: str) -> bool:
    try:
        return requests.get(f"{url}/hub/health", timeout=5).ok
    except (requests.ConnectionError, requests.Timeout):
        return False
