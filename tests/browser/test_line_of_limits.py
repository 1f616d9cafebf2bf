"""What people see who wait for a limit of a policy, though GPUs are free."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import ViewportSize, expect

from localcluster import LocalCluster
from tests.browser.accessibility import findings, overflow
from tests.browser.line_stage import OF_ACCELERATORS, a_hub_with_a_line, button, wait_in_line
from tests.browser.visiting import LOOKS, Theme, Visit, start
from tests.hub.running import RunningHub

ONE_FOR_THE_COURSE = f"""{OF_ACCELERATORS}
c.GPUSpawner.policies = {{"course": {{"groups": ["course"], "gpus_per_group": 1}}}}
c.JupyterHub.load_groups = {{"course": {{"users": ["alice", "carol"]}}}}
"""
SERVED = 30_000
"""Milliseconds in which a server that was called runs."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("limits") / "hub"


@pytest.fixture(scope="module")
def hub(running_cluster: LocalCluster, folder: Path) -> Iterator[RunningHub]:
    """A hub on which Alice has the only GPU that her course may have."""
    with a_hub_with_a_line(running_cluster, folder, ONE_FOR_THE_COURSE) as running:
        running.start_until_ready("alice", {"accelerator": "a100"})
        yield running


@LOOKS
def test_a_used_up_limit_can_be_waited_for(
    visit: Visit, hub: RunningHub, folder: Path, theme: Theme, size: ViewportSize
) -> None:
    if not hub.server("alice").get("ready"):
        hub.start_until_ready("alice", {"accelerator": "a100"})
    carol = visit(hub, "carol", theme=theme, size=size)
    carol.locator("[data-accelerator='a100']").get_by_role("radio").check()
    assert start(carol).status == 409
    expect(button(carol)).to_contain_text("You would be the first in line.")
    assert not findings(carol)
    assert not overflow(carol)
    carol.screenshot(path=folder.parent / f"limit-{theme}-{size['width']}.png", full_page=True)

    wait_in_line(carol)
    expect(carol.locator("#progress-message")).to_contain_text("Your place in line is kept")
    hub.stop("alice")

    carol.wait_for_url("**/user/carol/**", timeout=SERVED)
    hub.stop("carol")
