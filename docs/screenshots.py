"""Takes the documentation's pictures from the demo: `make screenshots`."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from localcluster.demo import Demo

IMAGES = Path(__file__).parent / "images"
WINDOW = {"width": 1000, "height": 900}


def main() -> None:
    """Take every picture anew."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="gpuspawner-screenshots-") as folder:
        demo = Demo(Path(folder), port=0)
        try:
            demo.start()
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(
                    executable_path=os.environ["CHROMIUM"],
                    args=["--no-sandbox", "--disable-background-networking"],
                )
                take(browser, demo.url)
        finally:
            demo.stop()


def take(browser: Browser, url: str) -> None:
    """Alice sees the form and takes the T4; bob asks for it too."""
    alice, bob = log_in(browser, url, "alice"), log_in(browser, url, "bob")
    picture(alice, "form")
    start(alice, "NVIDIA Tesla T4")
    alice.wait_for_url("**/lab*", timeout=60_000)
    start(bob, "NVIDIA Tesla T4")
    bob.get_by_role("alert").wait_for()
    picture(bob, "refusal")


def log_in(browser: Browser, url: str, name: str) -> Page:
    """The spawn form of a person."""
    page = browser.new_context(viewport=WINDOW, device_scale_factor=1.5).new_page()
    page.goto(f"{url}/hub/spawn")
    page.fill("#username_input", name)
    page.fill("#password_input", "any")
    page.click("#login_submit")
    page.get_by_text("No GPU").wait_for()
    return page


def start(page: Page, accelerator: str) -> None:
    """Choose an accelerator and press the button."""
    page.get_by_text(accelerator, exact=True).click()
    page.get_by_role("button", name="Start").click()


def picture(page: Page, name: str) -> None:
    """Save the whole page."""
    page.screenshot(path=IMAGES / f"{name}.png", full_page=True, animations="disabled")


if __name__ == "__main__":
    main()
