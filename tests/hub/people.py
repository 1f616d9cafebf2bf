"""Users with a browser, without a real one: it opens the hub's pages but runs no scripts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser
from typing import Any, Protocol

import requests


class HasPages(Protocol):
    """A hub's address."""

    url: str


@dataclass
class Page:
    """The hub's answer to a browser."""

    status: int
    url: str
    html: str

    @property
    def is_of_a_start(self) -> bool:
        """Whether the hub accepted the form: the server is starting or running."""
        return re.search(r"/(hub/spawn-pending|user)/", self.url) is not None

    @property
    def chosen(self) -> dict[str, str]:
        """The values that the spawn form would send unchanged."""
        fields = _Fields()
        fields.feed(self.html)
        return fields.chosen

    def buttons(self, name: str) -> list[str]:
        """The values that the buttons of this name would send."""
        fields = _Fields()
        fields.feed(self.html)
        return [value for its_name, value in fields.buttons if its_name == name]

    @property
    def text(self) -> str:
        without_scripts = re.sub(r"<(script|style)\b.*?</\1>", " ", self.html, flags=re.DOTALL)
        return " ".join(unescape(re.sub(r"<[^>]+>", " ", without_scripts)).split())


class _Fields(HTMLParser):
    """Collects checked radio buttons, selected options, and buttons."""

    def __init__(self) -> None:
        super().__init__()
        self.chosen: dict[str, str] = {}
        self.buttons: list[tuple[str | None, str]] = []
        self._select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "select":
            self._select = attributes["name"] or ""
        elif tag == "option" and ("selected" in attributes or self._select not in self.chosen):
            self.chosen[self._select] = attributes["value"] or ""
        elif tag == "button":
            self.buttons.append((attributes.get("name"), attributes.get("value") or ""))
        elif tag == "input" and attributes.get("type") == "radio" and "checked" in attributes:
            self.chosen[attributes["name"] or ""] = attributes["value"] or ""


@dataclass
class Person:
    """A user who has logged in with a browser."""

    hub: HasPages
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
        """Fill the spawn form with *form*, and press Start."""
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
