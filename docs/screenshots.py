"""Takes the documentation's screenshots: `make screenshots`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from localcluster import LocalCluster, Pods
from localcluster.demo import Demo
from tests.browser.states import NAMESPACE, Scene, a_hub

IMAGES = Path(__file__).parent / "images"
WINDOW = {"width": 1000, "height": 900}
PHONE = {"width": 390, "height": 844}


def main() -> None:
    """Take all screenshots again."""
    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(
            executable_path=os.environ["CHROMIUM"],
            args=["--no-sandbox", "--disable-background-networking"],
        )
        with Demo(Path(folder) / "demo", port=0) as demo:
            take_the_demo(browser, demo.url)
        take_the_states(browser, Path(folder))


def take_the_demo(browser: Browser, url: str) -> None:
    """Take the form as alice starts with the T4, and bob's refusal when he asks for it too."""
    alice, bob = log_in(window(browser), url, "alice"), log_in(window(browser), url, "bob")
    picture(alice, "form")
    start(alice, "NVIDIA Tesla T4")
    alice.wait_for_url("**/lab*", timeout=60_000)
    start(bob, "NVIDIA Tesla T4")
    bob.get_by_role("alert").wait_for()
    picture(bob, "refusal")


def take_the_states(browser: Browser, folder: Path) -> None:
    """Take the form with an accelerator in every state: light, dark and on a phone."""
    (folder / "hub").mkdir()
    with LocalCluster(folder / "cluster", pods=Pods.REPORT) as cluster:
        cluster.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        Scene(cluster, NAMESPACE).set()
        with a_hub(cluster, folder / "hub", cluster.kubeconfig) as hub:
            hub.until_it_sees_the_cluster()
            picture(log_in(window(browser), hub.url, "ann"), "states")
            picture(log_in(window(browser, theme="dark"), hub.url, "ann"), "states-dark")
            phone = log_in(window(browser, PHONE), hub.url, "ann")
            start(phone, "NVIDIA T4")
            phone.get_by_role("alert").wait_for()
            picture(phone, "refusal-phone")


def window(
    browser: Browser, size: Mapping[str, int] = WINDOW, theme: str = "light"
) -> BrowserContext:
    """Return a new browser context, so that each user has their own cookies."""
    return browser.new_context(viewport=dict(size), color_scheme=theme, device_scale_factor=1.5)


def log_in(context: BrowserContext, url: str, name: str) -> Page:
    """Log in and return the page with the spawn form."""
    page = context.new_page()
    page.goto(f"{url}/hub/spawn")
    page.fill("#username_input", name)
    page.fill("#password_input", "any")
    page.click("#login_submit")
    page.locator(".gpuspawner[data-live]").wait_for()
    return page


def start(page: Page, accelerator: str) -> None:
    """Choose an accelerator and press the button."""
    page.get_by_text(accelerator, exact=True).click()
    page.get_by_role("button", name="Start", exact=True).click()


def picture(page: Page, name: str) -> None:
    """Save the whole page, once it is live."""
    page.locator(".gpuspawner[data-live]").wait_for()
    page.screenshot(path=IMAGES / f"{name}.png", full_page=True, animations="disabled")


if __name__ == "__main__":
    main()
