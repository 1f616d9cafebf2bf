"""Steps of a user on the spawn form: open it, choose, and press the button."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import (
    Browser,
    Locator,
    Page,
    Response,
    ViewportSize,
)

from tests.browser.states import ON_A_LIVE_CLUSTER, Case
from tests.hub.people import HasPages, Person
from tests.waiting import PATIENCE

SCRIPT = pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
BY_KEY = {case.key: case for case in ON_A_LIVE_CLUSTER}
DESKTOP: ViewportSize = {"width": 1100, "height": 900}
PHONE: ViewportSize = {"width": 360, "height": 740}
LOOKS = pytest.mark.parametrize(
    ("theme", "size"),
    [("light", DESKTOP), ("dark", PHONE)],
    ids=["light-desktop", "dark-phone"],
)
Theme = Literal["light", "dark"]


class Visit:
    """Opens the form for a user, in a new browser context that has logged in before."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser

    def __call__(
        self,
        hub: HasPages,
        name: str = "ann",
        server: str = "",
        script: bool = True,
        size: ViewportSize = DESKTOP,
        theme: Theme = "light",
        shown: str = ".gpuspawner",
        language: str = "en",
    ) -> Page:
        context = self._browser.new_context(
            viewport=size,
            color_scheme=theme,
            java_script_enabled=script,
            reduced_motion="reduce",
            extra_http_headers={"Accept-Language": language},
        )
        context.set_default_timeout(1000 * PATIENCE)
        for cookie in Person(hub, name).log_in().session.cookies:
            key, value = cookie.name, cookie.value or ""
            context.add_cookies(
                [{"name": key, "value": value, "domain": "127.0.0.1", "path": cookie.path}]
            )
        page = context.new_page()
        page.goto(f"{hub.url}/hub/spawn/{name}/{server}".rstrip("/"))
        page.locator(shown).wait_for()
        return page


def picture(page: Page, name: str) -> None:
    """Keep what a person would see, once animations rest, if GPUSPAWNER_SHOTS names a folder."""
    if shots := os.environ.get("GPUSPAWNER_SHOTS"):
        path = Path(shots) / f"{name}.png"
        page.screenshot(path=path, full_page=True, animations="disabled")


def card(page: Page, case: Case) -> Locator:
    return page.locator(f"[data-accelerator='{case.key}']")


def choose(page: Page, case: Case, **choices: str) -> None:
    card(page, case).get_by_role("radio").check()
    for name, value in choices.items():
        named = f"select[name='{name}--{case.key}'], select[name='{name}']"
        page.locator(named).select_option(value)


def start(page: Page) -> Response:
    """Press the hub's own button."""
    with page.expect_response(is_a_start) as answer:
        page.locator("#spawn_form button.btn-jupyter").click()
    return answer.value


def is_a_start(answer: Response) -> bool:
    return answer.request.method == "POST" and "/hub/spawn" in answer.url


def refuse(page: Page) -> None:
    """Press the button for a busy accelerator, and wait for the refusal on the form."""
    choose(page, BY_KEY["t4"], memory="16Gi", cpu="4")
    assert start(page).status == 409
    page.locator(".gpuspawner-message").wait_for()


def live(page: Page) -> None:
    """Wait until the form's script shows live states."""
    page.locator(".gpuspawner[data-live]").wait_for()
