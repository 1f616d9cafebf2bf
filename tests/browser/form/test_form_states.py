"""The states that the spawn form shows, and their refresh."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import ElementHandle, Page, Route, expect

from gpuspawner.preflight.availability import State
from localcluster import LocalCluster, kubeconfig
from tests.browser.accessibility import findings
from tests.browser.states import (
    NAMESPACE,
    ON_A_LIVE_CLUSTER,
    WHERE_A_LIMIT_IS_REACHED,
    WHERE_A_POOL_MAY_GROW,
    WHERE_NOTHING_CAN_BE_READ,
    Scene,
    a_hub,
)
from tests.browser.visiting import BY_KEY, SCRIPT, Visit, card, choose, live
from tests.hub.running import RunningHub

# The form has already set its own timer of 300 ms.
AFTER_THE_FORMS_TIMER = "new Promise((done) => setTimeout(done, 301))"

# Without it, reading fails after 30 s without an answer. On a busy machine, the hub's start and the
# browser's take that long.
PATIENT = """
from functools import partial
from gpuspawner.cluster import view
view.Backoff = partial(view.Backoff, page=600.0)
"""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(State.READING, marks=pytest.mark.nightly("no rights are much the same")),
        State.UNKNOWN,
    ],
    ids=str,
)
def blind(
    request: pytest.FixtureRequest,
    reporting_cluster: LocalCluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[State, RunningHub]]:
    """A hub whose API server doesn't answer, and a hub without the rights to read."""
    folder = tmp_path_factory.mktemp(f"blind-{request.param}")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        if request.param is State.READING:
            config = kubeconfig.write(
                folder / "kubeconfig",
                url=f"http://127.0.0.1:{silent.getsockname()[1]}",
                ca=reporting_cluster.ca,
                token="none",
                namespace=NAMESPACE,
            )
        else:
            config = reporting_cluster.service_account_kubeconfig("default", "nobody")
        with a_hub(reporting_cluster, folder, config, PATIENT) as running:
            yield request.param, running


def hide(page: Page, clicked: ElementHandle | None = None) -> None:
    """Click, hide the page in the same moment, and record its later requests in `asked`."""
    page.evaluate(
        """(clicked) => {
          clicked?.click();
          Object.defineProperty(document, "hidden", { value: true, configurable: true });
          window.asked = [];
          const fetch = window.fetch;
          window.fetch = (...request) => {
            window.asked.push(request[0]);
            return fetch(...request);
          };
        }""",
        clicked,
    )


@SCRIPT
def test_the_form_shows_every_state_in_words_and_figures(
    visit: Visit, hub: RunningHub, script: bool
) -> None:
    page = visit(hub, script=script)
    if script:
        live(page)

    for case in ON_A_LIVE_CLUSTER:
        expect(card(page, case)).to_have_attribute("data-state", case.state.value)
        expect(card(page, case)).to_contain_text(case.says)
        expect(card(page, case).locator(".gpuspawner-word")).to_be_visible()
    shown = {case.state for case in ON_A_LIVE_CLUSTER}
    elsewhere = {*WHERE_NOTHING_CAN_BE_READ, WHERE_A_POOL_MAY_GROW, WHERE_A_LIMIT_IS_REACHED}
    assert shown | elsewhere | {State.WITHHELD} == set(State)  # that is for profiles only


def test_without_a_view_the_form_says_so_and_every_option_can_be_chosen(
    visit: Visit, blind: tuple[State, RunningHub]
) -> None:
    state, hub = blind
    page = visit(hub)
    live(page)

    for case in ON_A_LIVE_CLUSTER:
        expect(card(page, case)).to_have_attribute("data-state", state.value)
        expect(card(page, case).get_by_role("radio")).to_be_enabled()
    assert not findings(page)


def test_states_refresh_in_place_while_the_page_is_visible(
    visit: Visit, hub: RunningHub, scene: Scene
) -> None:
    page = visit(hub, "gil")
    live(page)
    choose(page, BY_KEY["t4"])
    field = page.locator("select[name=cpu]")
    field.focus()
    page.evaluate("window.notReloaded = true")

    hide(page)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.evaluate(AFTER_THE_FORMS_TIMER)
    assert page.evaluate("window.asked") == []

    scene.let_go(BY_KEY["t4"], 0)
    try:
        page.evaluate("delete document.hidden")
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        expect(card(page, BY_KEY["t4"])).to_have_attribute("data-state", "free")
        expect(card(page, BY_KEY["t4"])).to_contain_text("1 of 1 free")
        expect(page.get_by_role("status")).to_contain_text("There is room")
        expect(field).to_be_focused()
        assert page.evaluate("window.notReloaded && window.asked.length > 0")
    finally:
        scene.hold(BY_KEY["t4"], 0, 1)


def test_a_choice_on_a_hidden_page_is_checked_when_the_page_is_visible_again(
    visit: Visit, hub: RunningHub
) -> None:
    page = visit(hub, "hal")
    live(page)

    hide(page, card(page, BY_KEY["t4"]).get_by_role("radio").element_handle())
    page.evaluate(AFTER_THE_FORMS_TIMER)
    assert page.evaluate("window.asked") == []

    page.evaluate("delete document.hidden")
    with page.expect_request("**/decision/**"):
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    assert page.evaluate("window.asked.length") > 0


def test_an_open_form_follows_the_cluster_by_its_stream_alone(
    visit: Visit, hub: RunningHub, scene: Scene
) -> None:
    page = visit(hub, "jo")
    live(page)
    expect(card(page, BY_KEY["a100"])).to_contain_text(BY_KEY["a100"].says)
    choose(page, BY_KEY["t4"])
    expect(page.get_by_role("status")).to_contain_text("in use")
    choose(page, BY_KEY["a100"])
    expect(page.get_by_role("status")).to_contain_text("There is room")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate("window.notReloaded = true")
    t4 = card(page, BY_KEY["t4"])

    try:
        scene.let_go(BY_KEY["t4"], 0)
        expect(t4).to_have_attribute("data-state", "free")
        expect(t4).to_contain_text("1 of 1 free")
    finally:
        scene.hold(BY_KEY["t4"], 0, 1)
    expect(t4).to_have_attribute("data-state", "busy")
    assert page.evaluate("window.notReloaded")
    assert asked == []  # the answer about the A100 still stands


def test_a_hidden_page_has_no_stream_and_opens_one_when_it_is_visible_again(
    visit: Visit, hub: RunningHub
) -> None:
    page = visit(hub, "kim")
    streams: list[str] = []
    page.on("requestfailed", lambda request: streams.append(request.url))
    live(page)

    with page.expect_event("requestfailed", lambda request: "/stream/" in request.url):
        hide(page)
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.evaluate(AFTER_THE_FORMS_TIMER)
    assert page.evaluate("window.asked") == []

    with page.expect_response("**/stream/**") as again:
        page.evaluate("delete document.hidden")
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    assert again.value.ok


def test_who_has_logged_out_elsewhere_logs_in_and_is_back_at_the_form(
    visit: Visit, hub: RunningHub
) -> None:
    page = visit(hub, "zoe")
    live(page)
    page.context.clear_cookies()
    page.locator("input[type=radio]:not(:checked):enabled").first.check()

    page.get_by_role("link", name="Your login has ended. Log in again.").click()
    page.get_by_label("Username").fill("zoe")
    page.get_by_label("Password").fill("x")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(re.compile("/hub/spawn"))
    live(page)


@pytest.mark.parametrize(
    "handle",
    [lambda route: route.abort(), lambda _: None],
    ids=["it fails", "a proxy holds it back"],
)
def test_a_form_without_a_stream_asks_instead(
    visit: Visit, hub: RunningHub, handle: Callable[[Route], None]
) -> None:
    page = visit(hub, "lea")
    page.route("**/gpuspawner/stream/**", handle)
    with page.expect_response("**/gpuspawner/states/**"):
        page.reload()
    live(page)
