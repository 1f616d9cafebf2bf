"""Chromium, and the demo to point it at."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from localcluster.demo import NAMESPACE, Demo
from tests.hub.pods import Pods
from tests.waiting import wait_for

# Chromium's own calls to the internet would only slow a test that has none.
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@pytest.fixture(scope="module")
def running_demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    demo = Demo(tmp_path_factory.mktemp("demo"), port=0)
    try:
        demo.start()
        yield demo
    finally:
        demo.stop()


@pytest.fixture(scope="module")
def pods(running_demo: Demo) -> Pods:
    return Pods(running_demo.cluster, NAMESPACE)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, for no longer than a module: meanwhile no other event loop can run here."""
    path = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield launched
        launched.close()


@dataclass
class People:
    """Opens a browser for each person, who logs in with it.

    A test uses names that no other has: the hub remembers people and their servers.

    Attributes:
        browser: Chromium; each person gets a profile of their own.
        url: Where the hub is.
    """

    browser: Browser
    url: str

    def log_in(self, name: str) -> Page:
        """The spawn form, as *name* sees it after logging in."""
        page = self.browser.new_context().new_page()
        page.goto(f"{self.url}/hub/spawn")
        page.fill("#username_input", name)
        page.fill("#password_input", "any")
        page.click("#login_submit")
        page.locator("#spawn_form").wait_for()
        return page


@pytest.fixture
def people(browser: Browser, running_demo: Demo, pods: Pods) -> Iterator[People]:
    yield People(browser, running_demo.url)
    for context in browser.contexts:
        context.close()
    running_demo.cluster.api.delete(pods.path, grace=0)
    wait_for(lambda: not pods.all())
