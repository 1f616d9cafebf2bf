"""People who ask for servers by the form in several tabs, and by REST with several tokens."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import requests

from tests.hub.people import Person
from tests.race.limits import Limit, Server
from tests.race.policy_stage import PolicyStage

# How long a person waits before asking a hub again that doesn't answer.
_PAUSE = 0.5
_UNCOUNTED = "The hub can't count right now how much is in use."
_TOO_LARGE = "A server of yours can have at most 1 GPU"


class Way(StrEnum):
    """How a person asks."""

    FORM = "form"
    TOKEN = "token"
    SECOND_TOKEN = "second token"
    ADMINISTRATOR = "administrator"


STARTED, AWAY = "started", "away"
ALREADY = "already"


@dataclass(frozen=True)
class Answer:
    """The hub's answer to one request to start a server.

    Attributes:
        kind: `STARTED`, `ALREADY`, `AWAY` if the hub can't answer or start the server, the name
            of the limit that a refusal names, or another reason for a refusal.
        text: What the hub said.
    """

    kind: str
    text: str
    seconds: float = 0.0


@dataclass
class User:
    """A person who has logged in, and has two tokens."""

    stage: PolicyStage
    name: str
    browser: Person
    tokens: tuple[str, str]

    @classmethod
    def arrive(cls, stage: PolicyStage, name: str) -> User:
        def token() -> str:
            answer = stage.hub.api("POST", f"/users/{name}/tokens", {})
            assert answer.status_code == 201, answer.text
            return str(answer.json()["token"])

        return cls(stage, name, stage.hub.person(name), (token(), token()))

    def tab(self) -> Tab:
        """Open another tab of the same browser."""
        session = requests.Session()
        session.cookies.update(self.browser.session.cookies)
        session.trust_env = False
        return Tab(self, Person(self.stage.hub, self.name, session))


@dataclass
class Tab:
    """One tab or script of a user."""

    user: User
    browser: Person

    def ask(self, server: Server, way: Way) -> Answer:
        """Ask for a server once."""
        began = time.monotonic()
        try:
            found = self._by_form(server) if way is Way.FORM else self._by_rest(server, way)
        except requests.RequestException as error:
            found = Answer(AWAY, repr(error))
        return Answer(found.kind, found.text, time.monotonic() - began)

    def stop(self, name: str) -> None:
        """Stop a server, whatever it does; return when the hub has stopped it."""
        servers, owner = self.user.stage.servers, self.user.name
        while True:
            try:
                if self._request("DELETE", name, self.user.tokens[0]).status_code == 204:
                    return
            except requests.RequestException:
                time.sleep(_PAUSE)
            idle = servers.wait_for(owner, lambda it: not it.get("pending"), 300, name)
            if not idle:
                return

    def _by_form(self, server: Server) -> Answer:
        form = {
            "accelerator": server.accelerator,
            f"gpus--{server.accelerator}": str(server.gpus),
        }
        try:
            page = self.browser.submit(form, server=server.name, redirects=False)
        except StopIteration:
            return Answer(AWAY, "the hub has set no cookie yet")
        return self._answer(page.status, page.text)

    def _by_rest(self, server: Server, way: Way) -> Answer:
        if way is Way.ADMINISTRATOR:
            path = f"/users/{server.owner}/servers/{server.name}"
            found = self.user.stage.hub.api("POST", path, server.options)
        else:
            token = self.user.tokens[way is Way.SECOND_TOKEN]
            found = self._request("POST", server.name, token, server.options)
        return self._answer(found.status_code, _message(found))

    def _request(
        self, method: str, name: str, token: str, body: dict[str, Any] | None = None
    ) -> requests.Response:
        url = f"{self.user.stage.hub.url}/hub/api/users/{self.user.name}/servers/{name}"
        headers = {"Authorization": f"token {token}"}
        return requests.request(method, url, json=body, headers=headers, timeout=120)

    def _answer(self, status: int, text: str) -> Answer:
        if status in (201, 202, 302):
            return Answer(STARTED, text)
        return Answer(kind(status, text, self.user.stage.users.limits), text)


def _message(answer: requests.Response) -> str:
    """Return what an answer of the REST API says: its message, or all of it."""
    try:
        return str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        return answer.text


def kind(status: int, text: str, limits: Iterable[Limit]) -> str:
    """Return the reason of a refusal, by what it says."""
    for limit in limits:
        if limit.told in text:
            return limit.name
    for words, found in (
        (_UNCOUNTED, "uncounted"),
        (_TOO_LARGE, "too large"),
        ("at most 3 GPUs at a time", "too large"),
    ):
        if words in text:
            return found
    if re.search(r"already (running|start|pending)|is pending", text):
        return ALREADY
    if status >= 500:
        return AWAY
    return f"HTTP {status}: {text[:400]}"
