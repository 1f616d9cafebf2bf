"""Chromium, and the hub of most of its visits.

What has the scope of the package ends when a worker's next test isn't one of this folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from localcluster import LocalCluster
from tests.browser.states import NAMESPACE, Scene, a_hub
from tests.browser.visiting import Visit
from tests.fixtures.cluster import ensure_namespace
from tests.hub.running import RunningHub
from tests.waiting import PATIENCE
from tools import pseudo
from tools.chromium import on_path

# Without internet, Chromium's own requests to it would only slow the tests.
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]

expect.set_options(timeout=1000 * PATIENCE)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Chromium, for this folder only: no other event loop can run while it is open."""
    path = os.environ.get("CHROMIUM") or on_path()
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield launched
        launched.close()


@pytest.fixture(scope="package")
def scene(reporting_cluster: LocalCluster) -> Iterator[Scene]:
    ensure_namespace(reporting_cluster, NAMESPACE)
    scene = Scene(reporting_cluster, NAMESPACE)
    scene.set()
    yield scene
    scene.strike()


@pytest.fixture(scope="package")
def hub(
    scene: Scene,  # noqa: ARG001, the hub sees it from its start
    reporting_cluster: LocalCluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RunningHub]:
    folder = tmp_path_factory.mktemp("forms")
    languages = pseudo.write(folder / "locale")
    with a_hub(reporting_cluster, folder, reporting_cluster.kubeconfig, languages) as running:
        running.until_it_sees_the_cluster()
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the hub of a module that has its own."""
    return tmp_path_factory.mktemp("browser") / "hub"


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    yield Visit(browser)
    for context in browser.contexts:
        context.close()
