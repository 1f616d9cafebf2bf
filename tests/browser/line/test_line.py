"""What people see who wait in line, on the form, the hub's own page and the page of the line."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Route, ViewportSize, expect

from localcluster import LocalCluster
from tests.browser import languages
from tests.browser.accessibility import findings, findings_in, overflow
from tests.browser.line_stage import (
    LEAVE,
    OF_ACCELERATORS,
    a_hub_with_a_line,
    button,
    fill,
    wait_in_line,
)
from tests.browser.visiting import LOOKS, Theme, Visit, live, picture, start
from tests.hub.running import RunningHub
from tests.waiting import wait_for
from tools import pseudo

ONE_FOR_THE_COURSE = f"""{OF_ACCELERATORS}
c.GPUSpawner.policies["course"] = {{"groups": ["course"], "gpus_per_group": 1}}
c.JupyterHub.load_groups = {{"course": {{"users": ["amy", "cat"]}}}}
"""
NEXT = "You are next in line."
SECOND = "You are in line: 1 person is ahead of you."
OTHERS = "In the last day, eight of ten people who waited for this waited 10 to 40 minutes."


@pytest.fixture(scope="module")
def whole_hub(running_cluster: LocalCluster, folder: Path) -> Iterator[RunningHub]:
    queue = {"minutes_away": 1}
    configuration = pseudo.write(folder.parent / "locale") + ONE_FOR_THE_COURSE
    with a_hub_with_a_line(running_cluster, folder, configuration, queue) as running:
        yield running


@pytest.fixture
def hub(whole_hub: RunningHub) -> Iterator[RunningHub]:
    """A hub on which Alice and Bob have all A100s, and nobody else has anything."""
    fill(whole_hub, accelerator="a100")
    yield whole_hub
    for user in whole_hub.api("GET", "/users").json():
        if user["servers"] and user["name"] not in {"alice", "bob"}:
            whole_hub.stop(user["name"])


def message(page: Page) -> Locator:
    return page.locator("#progress-message")


def refused(
    visit: Visit, hub: RunningHub, user: str, accelerator: str = "a100", **looks: object
) -> Page:
    """Ask for a GPU that can't be had, and return the form that refuses it."""
    page = visit(hub, user, **looks)  # type: ignore[arg-type]
    page.locator(f"[data-accelerator='{accelerator}']").get_by_role("radio").check()
    assert start(page).status == 409
    return page


def waiting(visit: Visit, hub: RunningHub, user: str, **looks: object) -> Page:
    page = refused(visit, hub, user, **looks)
    wait_in_line(page)
    return page


def open_the_line(page: Page) -> None:
    page.get_by_role("link", name=LEAVE).click()
    page.get_by_role("heading", name="Your place in line").wait_for()


def come_back_sooner(route: Route) -> None:
    """Let a page that comes back by itself after half a minute do so after a second."""
    answer = route.fetch(max_redirects=0)
    if answer.status != HTTPStatus.OK:
        route.continue_()
        return
    page = answer.text()
    refresh = 'http-equiv="refresh" content="{}"'
    assert refresh.format(30) in page
    route.fulfill(response=answer, body=page.replace(refresh.format(30), refresh.format(1)))


def test_who_waits_sees_the_place_and_is_served_without_doing_anything(
    visit: Visit, hub: RunningHub
) -> None:
    carol = refused(visit, hub, "carol")
    expect(button(carol)).to_contain_text("You would be the first in line.")
    picture(carol, "refused")
    wait_in_line(carol)
    expect(message(carol)).to_contain_text(NEXT)
    dave = refused(visit, hub, "dave")
    expect(button(dave)).to_contain_text("1 person would be ahead of you.")
    wait_in_line(dave)
    expect(message(dave)).to_contain_text(SECOND)
    for page in (carol, dave):
        expect(message(page)).to_contain_text("1 × NVIDIA A100")
        expect(message(page)).to_contain_text(OTHERS)
        expect(page.get_by_text("Your server is starting up.")).to_be_hidden()
        expect(page.get_by_role("button", name="Stop Server")).to_be_hidden()
    picture(dave, "second")
    erin = waiting(visit, hub, "erin")
    open_the_line(dave)
    expect(dave.get_by_role("status")).to_contain_text(SECOND)

    hub.stop("alice")

    carol.wait_for_url("**/user/carol/**")
    expect(dave.get_by_role("status")).to_contain_text(NEXT)
    expect(message(erin)).to_contain_text(SECOND)
    picture(dave, "next")

    hub.stop("bob")

    dave.wait_for_url("**/user/dave/**")
    expect(message(erin)).to_contain_text(NEXT)


def test_who_ticks_the_box_is_served_with_the_page_closed(visit: Visit, hub: RunningHub) -> None:
    dave = refused(visit, hub, "dave")
    dave.get_by_label("Start my server even if I have closed the page by then").check()
    wait_in_line(dave)
    expect(message(dave)).to_contain_text("You can close this page: your server starts anyway.")
    dave.close()

    hub.stop("alice")

    hub.until_ready("dave")


def test_who_keeps_waiting_has_the_same_place_and_who_leaves_comes_to_the_form(
    visit: Visit, hub: RunningHub
) -> None:
    dave, erin = waiting(visit, hub, "dave"), waiting(visit, hub, "erin")
    expect(message(erin)).to_contain_text(SECOND)
    open_the_line(dave)
    picture(dave, "line")
    dave.get_by_role("link", name="Keep waiting").click()
    expect(message(dave)).to_contain_text(NEXT)
    open_the_line(dave)

    dave.get_by_role("button", name="Leave the line").click()

    dave.wait_for_url("**/hub/spawn/dave")
    expect(dave.get_by_text("You have left the line.")).to_be_visible()
    picture(dave, "left")
    assert not hub.server("dave")
    expect(message(erin)).to_contain_text(NEXT)


def test_who_takes_something_else_has_left_the_line(visit: Visit, hub: RunningHub) -> None:
    erin, frank = waiting(visit, hub, "erin"), waiting(visit, hub, "frank")
    open_the_line(erin)

    erin.get_by_role("button", name="Start with 1 × NVIDIA T4").click()

    erin.wait_for_url("**/user/erin/**")
    assert hub.server("erin")["user_options"]["accelerator"] == "t4"
    expect(message(frank)).to_contain_text(NEXT)


def test_a_used_up_limit_can_be_waited_for_though_gpus_are_free(
    visit: Visit, hub: RunningHub
) -> None:
    hub.start_until_ready("amy", {"accelerator": "t4"})
    cat = refused(visit, hub, "cat", "t4")
    expect(button(cat)).to_contain_text("You would be the first in line.")
    picture(cat, "limit")

    wait_in_line(cat)
    expect(message(cat)).to_contain_text("Your place in line is kept")
    hub.stop("amy")

    cat.wait_for_url("**/user/cat/**")


def test_after_a_restart_of_the_hub_the_page_of_the_line_is_current_again(
    visit: Visit, hub: RunningHub
) -> None:
    waiting(visit, hub, "dave")
    erin = waiting(visit, hub, "erin")
    erin.clock.install()
    open_the_line(erin)
    hub.kill()
    hub.begin()
    hub.until_it_serves()
    for user in ("dave", "erin"):
        wait_for(lambda: hub.server(user).get("pending") == "spawn")  # noqa: B023, called at once
    expect(erin.get_by_role("status")).to_contain_text(SECOND)

    hub.api("DELETE", "/users/dave/server")
    erin.clock.fast_forward("00:45")  # the proxy hides that the connection has ended

    expect(erin.get_by_role("status")).to_contain_text(NEXT)


def test_the_page_of_the_line_gives_up_a_connection_that_says_nothing(
    visit: Visit, hub: RunningHub
) -> None:
    dave, erin = waiting(visit, hub, "dave"), waiting(visit, hub, "erin")
    erin.clock.install()
    erin.route("**/progress?*", lambda _: None, times=1)
    open_the_line(erin)
    open_the_line(dave)
    dave.get_by_role("button", name="Leave the line").click()
    dave.wait_for_url("**/hub/spawn/dave")
    expect(erin.get_by_role("status")).to_contain_text(SECOND)

    erin.clock.fast_forward("00:45")

    expect(erin.get_by_role("status")).to_contain_text(NEXT)


def test_without_a_script_the_page_of_the_line_is_found_and_leads_on(
    visit: Visit, hub: RunningHub
) -> None:
    dave = refused(visit, hub, "dave", script=False)
    button(dave).click()
    dave.wait_for_url("**/hub/spawn-pending/**")
    place = dave.get_by_role("link", name="Your place in line")
    wait_for(lambda: dave.goto(f"{hub.url}/hub/home") and place.count())
    picture(dave, "no-script")
    dave.route("**/hub/gpuspawner/line/dave/", come_back_sooner)
    place.click()
    expect(dave.get_by_role("status")).to_contain_text(NEXT)

    hub.stop("alice")

    dave.wait_for_url(lambda url: "/gpuspawner/" not in url)  # by itself
    wait_for(lambda: dave.reload() and "/user/dave/" in dave.url)


@pytest.mark.nightly("it waits for more than a minute")
def test_a_closed_page_gives_the_place_up_after_minutes_away(visit: Visit, hub: RunningHub) -> None:
    dave, erin = waiting(visit, hub, "dave"), waiting(visit, hub, "erin")
    dave.close()
    wait_for(lambda: not hub.server("dave"), timeout=180)
    expect(message(erin)).to_contain_text(NEXT)
    again = dave.context.new_page()
    again.goto(f"{hub.url}/hub/spawn/dave")
    expect(again.get_by_text("You were away, so your place in line was given")).to_be_visible()
    picture(again, "away")


@LOOKS
def test_axe_finds_no_problem_of_ours(
    visit: Visit, hub: RunningHub, theme: Theme, size: ViewportSize
) -> None:
    user = f"{theme}-{size['width']}"
    page = refused(visit, hub, user, theme=theme, size=size)
    live(page)
    picture(page, f"{user}-refused")
    assert findings(page) == []
    assert overflow(page) <= 0

    wait_in_line(page)
    page.get_by_text("Event log").click()
    picture(page, f"{user}-waiting")
    assert findings_in(page, "#progress-message, #progress-log") == []
    assert overflow(page) <= 0

    open_the_line(page)
    picture(page, f"{user}-line")
    assert findings(page) == []
    assert overflow(page) <= 0
    page.get_by_role("button", name="Leave the line").click()
    page.wait_for_url(f"**/hub/spawn/{user}")
    picture(page, f"{user}-left")
    assert findings(page) == []


@languages.LOOKS
def test_the_line_is_in_the_reader_s_language_and_has_room_for_it(
    visit: Visit, hub: RunningHub, language: str, theme: Theme, size: ViewportSize
) -> None:
    user = f"{language}-{theme}".lower()
    page = refused(visit, hub, user, theme=theme, size=size, language=language)

    def check(place: str, name: str) -> None:
        picture(page, f"{name}-{user}")
        if language in languages.PSEUDO:
            assert languages.english(page, place, [OF_ACCELERATORS, user]) == []
        assert languages.cut_off(page, place) == []
        assert overflow(page) <= 0
        assert findings_in(page, place) == []

    live(page)
    check(".gpuspawner", "line-refused")
    page.locator("button[name=wait]").click()
    page.wait_for_url("**/hub/spawn-pending/**")
    said = message(page).locator(f"[lang='{language}']").first
    expect(said).to_contain_text("1 × NVIDIA A100")
    check("#progress-message", "line-waiting")
    page.goto(f"{hub.url}/hub/home")
    check(f"[lang='{language}']", "line-home")
    page.go_back()
    message(page).locator(".gpuspawner-line a").click()
    page.locator(".gpuspawner-leave").wait_for()
    check(".gpuspawner", "line-page")
    page.locator(".gpuspawner-leave button").click()
    page.wait_for_url(f"**/hub/spawn/{user}")
    check(".gpuspawner", "line-left")
