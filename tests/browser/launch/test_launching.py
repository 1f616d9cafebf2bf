"""What a server's owner sees between the click and the server, on the hub's own pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect

from localcluster import LocalCluster
from tests.browser import languages
from tests.browser.accessibility import findings_in, overflow
from tests.browser.launch_stage import (
    CONFIGURATION,
    FAILURES,
    OTHERS,
    a_hub_of_launches,
    follow,
)
from tests.browser.visiting import LOOKS, PHONE, Theme, Visit, picture
from tests.hub.running import RunningHub

RAW = "details.gpuspawner-raw"


@pytest.fixture(scope="module")
def hub(running_cluster: LocalCluster, folder: Path) -> Iterator[RunningHub]:
    with a_hub_of_launches(running_cluster, folder) as running:
        yield running


def message(page: Page) -> Locator:
    return page.locator("#progress-message")


def until_it_has_failed(page: Page) -> None:
    expect(page.locator("#progress-bar")).to_have_class("progress-bar bg-danger")


@pytest.mark.parametrize(
    "profiles",
    [
        ("missing-image", "crash", "memory"),
        pytest.param(tuple(FAILURES), marks=pytest.mark.nightly("others are much the same")),
    ],
    ids=["three", "all"],
)
def test_each_failure_has_its_sentence_and_what_kubernetes_says_closed_beneath(
    visit: Visit, hub: RunningHub, folder: Path, profiles: tuple[str, ...]
) -> None:
    pages = {profile: visit(hub, profile, shown="#spawn_form") for profile in profiles}
    for profile, page in pages.items():
        follow(page, folder, profile)

    for profile, page in pages.items():
        until_it_has_failed(page)
        picture(page, profile)
        course = FAILURES[profile]
        expect(message(page)).to_contain_text(course.says)
        if course.raw:
            raw = message(page).get_by_text(course.raw)
            expect(raw).to_be_hidden()
            message(page).get_by_text("What Kubernetes says").click()
            expect(raw).to_be_visible()


def test_a_failed_start_is_told_on_every_page_until_the_next_start(
    visit: Visit, hub: RunningHub, folder: Path
) -> None:
    page = visit(hub, "ann", shown="#spawn_form")
    follow(page, folder, "missing-image")
    until_it_has_failed(page)
    expect(page.get_by_text("Your server is starting up.")).to_be_hidden()
    expect(page.get_by_role("button", name="Stop Server")).to_be_hidden()

    answer = page.reload()
    assert answer is not None
    assert answer.status == 409
    picture(page, "reloaded")
    expect(page.locator("p", has_text="There is no image")).to_be_visible()
    expect(page.get_by_role("link", name="Start again")).to_be_hidden()

    page.get_by_role("button", name="Relaunch Server").click()
    told = page.get_by_text("Your last start failed: There is no image")
    expect(told).to_be_visible()
    picture(page, "form-again")
    page.locator("input[value='slow']").check()
    page.locator("#spawn_form button.btn-jupyter").click()
    page.wait_for_url("**/user/ann/**")
    hub.stop("ann")
    page.goto(f"{hub.url}/hub/spawn/ann")
    expect(told).to_have_count(0)


def test_the_page_of_a_failure_leads_to_the_form(
    visit: Visit, hub: RunningHub, folder: Path
) -> None:
    page = visit(hub, "bob", shown="#spawn_form")
    follow(page, folder, "taken-device")
    until_it_has_failed(page)
    page.get_by_role("link", name="Start again").click()
    expect(page.get_by_text("Your last start failed: The GPU was taken")).to_be_visible()
    assert page.url == f"{hub.url}/hub/spawn/bob"


def test_a_long_name_fits_a_phone(visit: Visit, hub: RunningHub, folder: Path) -> None:
    page = visit(hub, "pia", size=PHONE, shown="#spawn_form")
    follow(page, folder, "missing-image")
    until_it_has_failed(page)
    assert overflow(page) <= 0
    page.get_by_role("link", name="Start again").click()
    told = page.get_by_text("Your last start failed: There is no image")
    picture(page, "long-name")
    assert told.evaluate("(line) => line.scrollWidth <= line.clientWidth")
    assert overflow(page) <= 0


def test_what_is_opened_stays_open_when_more_is_told(
    visit: Visit, hub: RunningHub, folder: Path
) -> None:
    page = visit(hub, "hal", shown="#spawn_form")
    follow(page, folder, "hitch")
    page.get_by_text("Event log").click()
    entries = page.locator("#progress-log .progress-log-event")
    entry = entries.filter(has_text=OTHERS["hitch"].says).first
    entry.get_by_text("What Kubernetes says").click()
    expect(message(page).locator(RAW)).to_be_hidden()
    picture(page, "hitch")

    expect(entries.filter(has_text="Your server is running").first).to_be_visible()
    shown = [it.inner_text() for it in entries.all() if it.is_visible()]
    assert len(shown) == len(set(shown))  # the bar has moved more often
    until_it_has_failed(page)
    expect(entry.get_by_text(OTHERS["hitch"].raw)).to_be_visible()


def test_the_bar_never_moves_back_on_the_way_to_the_server(
    visit: Visit, hub: RunningHub, folder: Path
) -> None:
    page = visit(hub, "sam", shown="#spawn_form")
    watch_the_stream(page)
    follow(page, folder, "slow-alone")
    picture(page, "slow")

    page.wait_for_url("**/user/sam/**")
    said = events(page)
    bars = [it["progress"] for it in said]
    assert len(set(bars)) > 4
    assert bars == sorted(bars)
    assert OTHERS["slow-alone"].says in "".join(it["message"] for it in said)


@LOOKS
def test_axe_finds_no_problem_of_ours(
    visit: Visit, hub: RunningHub, folder: Path, theme: Theme, size: ViewportSize
) -> None:
    user = f"{theme}-{size['width']}"
    page = visit(hub, user, shown="#spawn_form", theme=theme, size=size)
    follow(page, folder, "registry")
    page.get_by_text("Event log").click()
    said = page.locator("#progress-log").get_by_text("Still trying")
    said.locator("visible=true").first.wait_for()  # later events repeat it, hidden
    summaries = page.locator("#progress-log summary").locator("visible=true").all()
    assert summaries
    for summary in summaries:
        summary.click()
    picture(page, f"{user}-meanwhile")
    assert problems(page) == []

    until_it_has_failed(page)
    picture(page, f"{user}-failed")
    assert problems(page) == []
    message(page).locator("summary").click()
    assert problems(page) == []

    page.reload()
    page.locator(f"{RAW} summary").click()
    picture(page, f"{user}-reloaded")
    assert findings_in(page, RAW) == []
    assert overflow(page) <= 0


def problems(page: Page) -> list[str]:
    found = findings_in(page, "#progress-message, #progress-log")
    wider = overflow(page)
    return [*found, f"{wider} px too wide"] if wider > 0 else found


def watch_the_stream(page: Page) -> None:
    """Note all that the page's stream says, even on a page that then goes."""
    page.context.add_init_script(
        """const was = EventSource.prototype.constructor;
        window.EventSource = class extends was {
          constructor(...its) {
            super(...its);
            this.addEventListener("message", (event) => {
              const said = JSON.parse(localStorage.said || "[]");
              said.push(JSON.parse(event.data));
              localStorage.said = JSON.stringify(said);
            });
          }
        };"""
    )


def events(page: Page) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.evaluate("JSON.parse(localStorage.said)")
    return found


@pytest.mark.parametrize(("language", "theme"), [("zxx", "dark"), ("ar-XB", "light")])
def test_a_failed_start_is_told_in_the_reader_s_language(
    visit: Visit, hub: RunningHub, folder: Path, language: str, theme: Theme
) -> None:
    user = f"reads-{language}".lower()
    page = visit(hub, user, theme=theme, size=PHONE, language=language, shown="#spawn_form")
    follow(page, folder, "missing-image")
    until_it_has_failed(page)
    picture(page, f"failed-{language}")

    place = "#progress-message, .progress-log-event"
    assert (
        languages.english(page, place, [CONFIGURATION, "Spawn failed Server requested", user]) == []
    )
    assert languages.cut_off(page, "#progress-message") == []
    assert overflow(page) <= 0
