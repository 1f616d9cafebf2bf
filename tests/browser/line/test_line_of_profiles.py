"""What people see who wait in line for one of KubeSpawner's profiles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from localcluster import LocalCluster
from tests.browser.accessibility import findings_in, overflow
from tests.browser.line_stage import (
    LEAVE,
    OF_PROFILES,
    a_hub_with_a_line,
    button,
    fill,
    wait_in_line,
)
from tests.browser.visiting import LOOKS, Theme, Visit, picture
from tests.hub.running import RunningHub


@pytest.fixture(scope="module")
def hub(running_cluster: LocalCluster, folder: Path) -> Iterator[RunningHub]:
    with a_hub_with_a_line(running_cluster, folder, OF_PROFILES) as running:
        yield running


def refused(visit: Visit, hub: RunningHub, user: str, **looks: object) -> Page:
    """Ask for the profile with an A100, and return the form that refuses it."""
    fill(hub, profile="a100")
    page = visit(hub, user, shown="#spawn_form", **looks)  # type: ignore[arg-type]
    page.locator("input[value='a100']").check()
    page.locator("#spawn_form button.btn-jupyter").click()
    button(page).wait_for()
    return page


def test_a_profile_is_waited_for_and_starts(visit: Visit, hub: RunningHub) -> None:
    carol = refused(visit, hub, "carol")
    wait_in_line(carol)
    expect(carol.locator("#progress-message")).to_contain_text("You are next in line.")

    hub.stop("alice")

    carol.wait_for_url("**/user/carol/**")
    assert hub.server("carol")["user_options"] == {"profile": "a100"}
    hub.stop("carol")


def test_nobody_waits_for_another_profile_than_the_refused_one(
    visit: Visit, hub: RunningHub
) -> None:
    page = refused(visit, hub, "frank")
    page.get_by_label("Start my server even if I have closed the page by then").check()
    expect(button(page)).to_be_visible()

    page.locator("input[value='t4']").check()

    expect(button(page)).to_be_hidden()


def test_who_takes_another_profile_has_left_the_line(visit: Visit, hub: RunningHub) -> None:
    erin = refused(visit, hub, "erin")
    wait_in_line(erin)
    erin.get_by_role("link", name=LEAVE).click()

    erin.get_by_role("button", name="Start “Classes”").click()

    erin.wait_for_url("**/user/erin/**")
    assert hub.server("erin")["user_options"] == {"profile": "t4"}


@LOOKS
def test_axe_finds_no_problem_of_ours(
    visit: Visit, hub: RunningHub, theme: Theme, size: ViewportSize
) -> None:
    user = f"{theme}-{size['width']}"
    page = refused(visit, hub, user, theme=theme, size=size)
    picture(page, f"{user}-refused")
    assert findings_in(page, ".gpuspawner") == []
    assert overflow(page) <= 0

    wait_in_line(page)
    page.get_by_role("link", name=LEAVE).click()
    page.get_by_role("heading", name="Your place in line").wait_for()
    picture(page, f"{user}-line")
    assert findings_in(page, ".gpuspawner") == []
    assert overflow(page) <= 0
    hub.stop(user)
