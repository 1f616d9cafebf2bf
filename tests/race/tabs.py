"""People who ask for servers by the form in several tabs, and by REST with several tokens."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from enum import StrEnum

import requests

from tests.hub.people import Person
from tests.race.limits import Limit, Server
from tests.race.stage import Stage

STARTED, AWAY = "started", "away"
# How long a person waits before asking a hub again that doesn't answer.
_PAUSE = 0.5
_REASONS = {
    r"The hub can't count right now how much is in use\.": "uncounted",
    r"A server of yours can have at most 1 GPU|at most 3 GPUs at a time": "too large",
    r"already (running|start|pending)|is pending": "already",
}
"""Reasons for a refusal that name no limit on servers together."""


class Way(StrEnum):
    """How a person asks."""

    FORM = "form"
    TOKEN = "token"
    SECOND_TOKEN = "second token"
    ADMINISTRATOR = "administrator"


@dataclass(frozen=True)
class Answer:
    """The hub's answer to one request to start a server.

    Attributes:
        kind: `STARTED`, `AWAY` if the hub can't answer or start the server, the name of the limit
            that a refusal names, or another reason for a refusal.
        text: What the hub said.
    """

    kind: str
    text: str


@dataclass(frozen=True)
class Tab:
    """A tab in the browser of somebody who has two tokens, too."""

    stage: Stage
    limits: tuple[Limit, ...]
    browser: Person
    tokens: tuple[str, str]

    @classmethod
    def arrive(cls, stage: Stage, limits: tuple[Limit, ...], name: str) -> Tab:
        """Log somebody in."""

        def token() -> str:
            answer = stage.hub.api("POST", f"/users/{name}/tokens", {})
            assert answer.status_code == 201, answer.text
            return str(answer.json()["token"])

        return cls(stage, limits, stage.hub.person(name), (token(), token()))

    @property
    def owner(self) -> str:
        return self.browser.name

    def another(self) -> Tab:
        """Open another tab of the same browser."""
        session = requests.Session()
        session.cookies.update(self.browser.session.cookies)
        session.trust_env = False
        return replace(self, browser=replace(self.browser, session=session))

    def ask(self, server: Server, way: Way) -> Answer:
        """Ask for a server once."""
        try:
            status, text = self._by_form(server) if way is Way.FORM else self._by_rest(server, way)
        except (requests.RequestException, StopIteration) as error:
            return Answer(AWAY, repr(error))  # StopIteration: the hub has set no cookie yet
        return Answer(self._kind(status, text), text)

    def stop(self, name: str) -> None:
        """Stop a server, whatever it does; return when the hub has stopped it."""
        while True:
            try:
                if self._request("DELETE", name, self.tokens[0]).status_code == 204:
                    return
            except requests.RequestException:
                time.sleep(_PAUSE)
            if not self.stage.servers.until_idle(self.owner, name):
                return

    def _by_form(self, server: Server) -> tuple[int, str]:
        accelerator = server.accelerator
        form = {"accelerator": accelerator, f"gpus--{accelerator}": str(server.gpus)}
        page = self.browser.submit(form, server=server.name, redirects=False)
        return page.status, page.text

    def _by_rest(self, server: Server, way: Way) -> tuple[int, str]:
        token = "" if way is Way.ADMINISTRATOR else self.tokens[way is Way.SECOND_TOKEN]
        answer = self._request("POST", server.name, token, server.options)
        try:
            return answer.status_code, str(answer.json()["message"])
        except (ValueError, KeyError, TypeError):
            return answer.status_code, answer.text

    def _request(
        self, method: str, name: str, token: str, body: object = None
    ) -> requests.Response:
        """Send a request about a server, with a token or else as an administrator."""
        headers = {"Authorization": f"token {token}"} if token else {}
        path = f"/users/{self.owner}/servers/{name}"
        return self.stage.hub.api(method, path, body, headers=headers, timeout=120)

    def _kind(self, status: int, text: str) -> str:
        """Return what an answer comes to, by what it says."""
        if status in (201, 202, 302):
            return STARTED
        named = (limit.name for limit in self.limits if limit.told in text)
        others = (reason for words, reason in _REASONS.items() if re.search(words, text))
        unknown = AWAY if status >= 500 else f"HTTP {status}: {text[:400]}"
        return next(named, None) or next(others, None) or unknown
