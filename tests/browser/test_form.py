"""The spawn form in every state, with and without a script, as people see and use it."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ElementHandle, Page, Route, expect

from gpuspawner.availability import State
from localcluster import ApiError, LocalCluster, kubeconfig
from tests.browser.states import (
    NAMESPACE,
    ON_A_LIVE_CLUSTER,
    WHERE_NOTHING_CAN_BE_READ,
    Scene,
    a_hub,
)
from tests.browser.visiting import (
    BY_KEY,
    DESKTOP,
    PHONE,
    Visit,
    card,
    choose,
    is_a_start,
    live,
    refuse,
    start,
)
from tests.hub.running import RunningHub
from tests.waiting import wait_for

SCRIPT = pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
SERVER = pytest.mark.parametrize("server", ["", "work"], ids=["default", "named"])
LOOKS = pytest.mark.parametrize(
    ("theme", "size"),
    [("light", DESKTOP), ("dark", DESKTOP), ("light", PHONE), ("dark", PHONE)],
    ids=["light-desktop", "dark-desktop", "light-phone", "dark-phone"],
)
# What JupyterHub's own page has without us: its button's contrast, and no landmarks.
THE_HUBS_OWN = {"color-contrast", "landmark-one-main", "region"}
STRICT = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'"
)


@pytest.fixture(scope="module")
def scene(reporting_cluster: LocalCluster) -> Iterator[Scene]:
    # A worker that has left this module may come back to it, for work that another has too much of.
    with suppress(ApiError):
        reporting_cluster.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    scene = Scene(reporting_cluster, NAMESPACE)
    scene.set()
    yield scene
    scene.strike()


@pytest.fixture(scope="module")
def hub(
    scene: Scene,  # noqa: ARG001, what the hub sees from its start
    reporting_cluster: LocalCluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RunningHub]:
    folder = tmp_path_factory.mktemp("forms")
    with a_hub(reporting_cluster, folder, reporting_cluster.kubeconfig) as running:
        running.until_it_sees_the_cluster()
        yield running


@pytest.fixture(scope="module", params=WHERE_NOTHING_CAN_BE_READ, ids=str)
def blind(
    request: pytest.FixtureRequest,
    reporting_cluster: LocalCluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[State, RunningHub]]:
    """A hub that is not answered, and one that is not allowed to look."""
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
        with a_hub(reporting_cluster, folder, config) as running:
            yield request.param, running


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    yield Visit(browser)
    for context in browser.contexts:
        context.close()


# The form's own timer, of 300 ms, was set before this one.
AFTER_THE_FORMS_TIMER = "new Promise((done) => setTimeout(done, 301))"


def hide(page: Page, clicked: ElementHandle | None = None) -> None:
    """Click, hide the page in the same moment, and keep in `asked` what it asks from then on."""
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


def wide(page: Page) -> int:
    """How many pixels the page is wider than its window."""
    return int(
        page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    )


@SCRIPT
def test_every_state_is_told_in_words_and_figures(
    visit: Visit, hub: RunningHub, script: bool
) -> None:
    page = visit(hub, script=script)
    if script:
        live(page)

    for case in ON_A_LIVE_CLUSTER:
        expect(card(page, case)).to_have_attribute("data-state", case.state.value)
        expect(card(page, case)).to_contain_text(case.says)
        expect(card(page, case).locator(".gpuspawner-word")).to_be_visible()
    assert {case.state for case in ON_A_LIVE_CLUSTER} | set(WHERE_NOTHING_CAN_BE_READ) == set(State)


def test_where_nothing_can_be_read_it_says_so_and_all_can_be_chosen(
    visit: Visit, blind: tuple[State, RunningHub]
) -> None:
    state, hub = blind
    page = visit(hub)
    live(page)

    for case in ON_A_LIVE_CLUSTER:
        expect(card(page, case)).to_have_attribute("data-state", state.value)
        expect(card(page, case).get_by_role("radio")).to_be_enabled()
    assert not findings(page)


def findings(page: Page) -> list[str]:
    """What axe finds in our part of the page, and what it finds that is not the hub's own."""
    ours = Axe().run(page, context=".gpuspawner").response["violations"]
    everywhere = Axe().run(page).response["violations"]
    news = [it for it in everywhere if it["id"] not in THE_HUBS_OWN]
    news += [
        it
        for it in everywhere
        if it["id"] == "color-contrast"
        and any("btn-jupyter" not in node["html"] for node in it["nodes"])
    ]
    return [f"{it['id']}: {node['html'][:200]}" for it in (*ours, *news) for node in it["nodes"]]


@LOOKS
def test_axe_finds_nothing_in_it_and_nothing_new_on_the_page(
    visit: Visit, hub: RunningHub, theme: str, size: dict[str, int]
) -> None:
    page = visit(hub, theme=theme, size=size)
    live(page)
    assert findings(page) == []
    assert wide(page) <= 0

    refuse(page)
    live(page)
    assert findings(page) == []
    assert wide(page) <= 0


@pytest.mark.parametrize("width", [320, 550, 640, 800])
def test_nothing_is_squeezed_in_between(visit: Visit, hub: RunningHub, width: int) -> None:
    """640 is a window of 1280 at 200 %, 320 the same at 400 %."""
    page = visit(hub, size={"width": width, "height": 800})
    refuse(page)

    assert wide(page) <= 0
    name = card(page, BY_KEY["a100"]).locator("label").first.bounding_box()
    whole = card(page, BY_KEY["a100"]).bounding_box()
    assert name is not None
    assert whole is not None
    assert name["width"] >= 0.38 * whole["width"]


@SCRIPT
@SERVER
def test_a_refusal_has_the_focus_the_choices_and_a_way_out_of_one_click(
    visit: Visit, hub: RunningHub, script: bool, server: str
) -> None:
    name = f"bob{len(server)}{script:d}"
    page = visit(hub, name, server, script=script)

    refuse(page)

    message = page.get_by_role("alert")
    expect(message).to_have_text(re.compile("The one NVIDIA T4 is in use right now"))
    expect(message).to_be_focused()
    expect(page.locator(".spawn-error-msg")).to_be_hidden()
    expect(card(page, BY_KEY["t4"]).get_by_role("radio")).to_be_checked()
    expect(card(page, BY_KEY["t4"])).to_contain_text("None is free.")
    expect(page.locator("select[name=memory]")).to_have_value("16Gi")
    expect(page.locator("select[name=cpu]")).to_have_value("4")

    with page.expect_navigation(url=f"**/hub/spawn-pending/{name}**"):
        page.get_by_role("button", name="Start with 1 × NVIDIA A100").click()
    made = hub.api("GET", f"/users/{name}").json()["servers"][server]["user_options"]
    assert made == {
        "accelerator": "a100",
        "gpus": 1,
        "image": "minimal",
        "memory": "16Gi",
        "cpu": 4,
    }
    hub.api("DELETE", f"/users/{name}/servers/{server}" if server else f"/users/{name}/server")
    wait_for(lambda: not [pod for pod in hub.pods.names() if pod.startswith(f"jupyter-{name}")])


@SCRIPT
def test_enter_means_the_plain_start(visit: Visit, hub: RunningHub, script: bool) -> None:
    page = visit(hub, "cleo", script=script)
    refuse(page)

    radio = card(page, BY_KEY["t4"]).get_by_role("radio")
    with page.expect_response(is_a_start) as answer:
        radio.press("Enter")

    assert answer.value.status == 409
    expect(card(page, BY_KEY["t4"]).get_by_role("radio")).to_be_checked()


def test_it_is_used_by_keyboard_alone(visit: Visit, hub: RunningHub) -> None:
    page = visit(hub, "dora")
    live(page)
    page.get_by_role("radio", name="No GPU").focus()
    page.keyboard.press("ArrowDown")  # around, to the first
    expect(card(page, BY_KEY["a100"]).get_by_role("radio")).to_be_checked()
    page.keyboard.press("Tab")
    expect(page.locator("select[name=gpus--a100]")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.locator("select[name=gpus--a100]")).to_have_value("2")
    expect(page.get_by_role("status")).to_contain_text("There is room for this right now.")


def test_what_no_machine_has_together_cannot_be_chosen_and_is_explained(
    visit: Visit, hub: RunningHub
) -> None:
    page = visit(hub, "eve")
    live(page)
    choose(page, BY_KEY["a100"], gpus="4")

    counts = page.locator("select[name=gpus--a100] option")
    expect(counts.filter(has_text="8")).to_be_disabled()
    expect(counts.filter(has_text="8")).to_have_text("8 (no machine has it)")
    memory = page.locator("select[name=memory]")
    expect(memory.locator("option[value='128Gi']")).to_be_disabled()
    expect(memory.locator("option[value='16Gi']")).to_be_enabled()
    hint = page.locator(f"#{(memory.get_attribute('aria-describedby') or '').split()[-1]}")
    expect(hint).to_contain_text("on no machine together with your other choices")
    expect(card(page, BY_KEY["h100"]).get_by_role("radio")).to_be_disabled()


def test_without_a_script_the_same_is_refused_well(visit: Visit, hub: RunningHub) -> None:
    page = visit(hub, "fay", script=False)
    choose(page, BY_KEY["a100"], gpus="4", memory="128Gi")

    assert start(page).status == 409
    expect(page.get_by_role("alert")).to_contain_text("No machine with NVIDIA A100 has 128 GiB")
    expect(page.locator("select[name=memory]")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("button", name="Start with 4 × NVIDIA A100")).to_be_visible()


def test_states_are_refreshed_in_place_while_the_page_is_seen(
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
        expect(card(page, BY_KEY["t4"])).to_have_attribute("data-state", "free", timeout=60_000)
        expect(card(page, BY_KEY["t4"])).to_contain_text("1 of 1 free")
        expect(page.get_by_role("status")).to_contain_text("There is room", timeout=60_000)
        expect(field).to_be_focused()
        assert page.evaluate("window.notReloaded && window.asked.length > 0")
    finally:
        scene.hold(BY_KEY["t4"], 0, 1)


def test_a_choice_on_a_page_that_is_hidden_at_once_is_asked_about_when_it_is_seen_again(
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


def test_it_lives_under_a_strict_content_security_policy(visit: Visit, hub: RunningHub) -> None:
    page = visit(hub, "hal")

    def strictly(route: Route) -> None:
        answer = route.fetch()
        policy = {"content-security-policy": STRICT}
        route.fulfill(response=answer, headers={**answer.headers, **policy})

    page.route("**/hub/spawn/**", strictly)
    page.goto(page.url)
    live(page)
    choose(page, BY_KEY["a100"], gpus="2")

    expect(page.get_by_role("status")).to_contain_text("There is room for this right now.")
    expect(page.locator("select[name=gpus--t4]")).to_be_hidden()


def test_a_field_is_called_short_only_where_another_choice_of_it_would_help(
    visit: Visit, hub: RunningHub
) -> None:
    page = visit(hub, "ida")
    live(page)
    choose(page, BY_KEY["t4"])

    expect(page.locator("select[name=gpus--t4]")).to_have_text("1 (not free now)")
    expect(page.locator("select[name=cpu] option").first).to_have_text("1 core")
