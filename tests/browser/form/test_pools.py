"""Pools that grow, on both kinds of form: their states, accessibility and width."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from localcluster import LocalCluster
from tests.browser.accessibility import findings, findings_in, overflow
from tests.browser.pools import (
    ACCELERATORS,
    AT_MAXIMUM,
    AT_ZERO,
    GROWN,
    PROFILES,
    SOLD_OUT,
    UNDECLARED,
    a_hub_of_pools,
    growing,
)
from tests.browser.visiting import LOOKS, Theme, Visit
from tests.hub.running import RunningHub

SAID = {
    GROWN: "1 of 1 free",
    AT_ZERO: "takes about 4 minutes to start",
    UNDECLARED: "no machine is free, but one may be added",
    AT_MAXIMUM: "the only one is in use",
    SOLD_OUT: "the cloud provider has none right now",
}


@pytest.fixture(scope="module", params=[ACCELERATORS, PROFILES], ids=["accelerators", "profiles"])
def hub(
    request: pytest.FixtureRequest,
    reporting_cluster: LocalCluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RunningHub]:
    folder = tmp_path_factory.mktemp("pools") / "hub"
    with (
        growing(reporting_cluster),
        a_hub_of_pools(reporting_cluster, folder, request.param) as running,
    ):
        yield running


@LOOKS
def test_each_form_says_what_its_pools_can_do(
    visit: Visit, hub: RunningHub, theme: Theme, size: ViewportSize
) -> None:
    page = visit(hub, "ann", theme=theme, size=size, shown="#spawn_form")
    page.locator("[data-live]").wait_for(state="attached")
    for pool, detail in SAID.items():
        shown = page.locator(f"[data-accelerator={pool.key}], [data-gpuspawner-profile={pool.key}]")
        expect(shown).to_contain_text(detail)
    assert problems(page) == []
    assert overflow(page) <= 0


def problems(page: Page) -> list[str]:
    """Return what axe finds in what is ours: the whole form, or the states in KubeSpawner's."""
    if page.locator("[data-accelerator]").count():
        return findings(page)
    return findings_in(page, "[data-gpuspawner-profile]")
