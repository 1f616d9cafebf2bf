"""Chromium, and the demo and the hub that it visits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from localcluster import ApiError, LocalCluster
from localcluster.demo import NAMESPACE as DEMO_NAMESPACE
from localcluster.demo import Demo
from tests.browser.states import NAMESPACE, Scene, a_hub
from tests.browser.visiting import Visit
from tests.hub.pods import Pods
from tests.hub.running import RunningHub
from tests.waiting import PATIENCE, wait_for

# Without internet, Chromium's own requests to it would only slow the tests.
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]

expect.set_options(timeout=1000 * PATIENCE)


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
    return Pods(running_demo.cluster, DEMO_NAMESPACE)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, for one module: no other event loop can run here while it is open."""
    path = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield launched
        launched.close()


@dataclass
class People:
    """Opens a browser for each user, and logs the user in.

    Each test needs names of its own, because the hub remembers users and their servers.

    Attributes:
        browser: Chromium; each user gets a profile of their own.
        url: The hub's address.
    """

    browser: Browser
    url: str

    def log_in(self, name: str) -> Page:
        """Log *name* in, and return the page with the spawn form."""
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


@pytest.fixture(scope="module")
def scene(reporting_cluster: LocalCluster) -> Iterator[Scene]:
    # Several modules use the scene one after the other on one cluster.
    with suppress(ApiError):
        reporting_cluster.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    scene = Scene(reporting_cluster, NAMESPACE)
    scene.set()
    yield scene
    scene.strike()


@pytest.fixture(scope="module")
def hub(
    scene: Scene,  # noqa: ARG001, the hub sees it from its start
    reporting_cluster: LocalCluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RunningHub]:
    folder = tmp_path_factory.mktemp("forms")
    with a_hub(reporting_cluster, folder, reporting_cluster.kubeconfig) as running:
        running.until_it_sees_the_cluster()
        yield running


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    yield Visit(browser)
    for context in browser.contexts:
        context.close()
