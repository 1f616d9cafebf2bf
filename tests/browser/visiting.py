"""Steps of a user on the spawn form: open it, choose, and press the button."""

from __future__ import annotations

from typing import Literal

import pytest
from playwright.sync_api import Browser, Locator, Page, Response, ViewportSize

from tests.browser.states import ON_A_LIVE_CLUSTER, Case
from tests.hub.running import RunningHub

SCRIPT = pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
BY_KEY = {case.key: case for case in ON_A_LIVE_CLUSTER}
DESKTOP: ViewportSize = {"width": 1100, "height": 900}
PHONE: ViewportSize = {"width": 360, "height": 740}
LOOKS = pytest.mark.parametrize(
    ("theme", "size"),
    [("light", DESKTOP), ("dark", DESKTOP), ("light", PHONE), ("dark", PHONE)],
    ids=["light-desktop", "dark-desktop", "light-phone", "dark-phone"],
)
Theme = Literal["light", "dark"]


class Visit:
    """Opens the form for a user, in a new browser context."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._number = 0

    def __call__(
        self,
        hub: RunningHub,
        name: str = "ann",
        server: str = "",
        script: bool = True,
        size: ViewportSize = DESKTOP,
        theme: Theme = "light",
        shown: str = ".gpuspawner",
    ) -> Page:
        context = self._browser.new_context(
            viewport=size,
            color_scheme=theme,
            java_script_enabled=script,
            reduced_motion="reduce",
        )
        page = context.new_page()
        page.goto(f"{hub.url}/hub/login")
        page.fill("#username_input", name)
        page.fill("#password_input", "any")
        page.click("#login_submit")
        page.wait_for_url("**/hub/**")
        page.goto(f"{hub.url}/hub/spawn/{name}/{server}".rstrip("/"))
        page.locator(shown).wait_for()
        return page


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
    page.locator(".gpuspawner[data-live]").wait_for(timeout=60_000)
