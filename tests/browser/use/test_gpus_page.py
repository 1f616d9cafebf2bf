"""The page of GPUs, as administrators and others see it."""

import pytest
from playwright.sync_api import expect

from tests.browser.accessibility import findings_in, overflow, ring_contrast
from tests.browser.use_stage import PAGE, a_hub_in_use, open_the_page
from tests.browser.visiting import DESKTOP, LOOKS, PHONE, SCRIPT, picture
from tests.waiting import wait_for


@pytest.fixture(scope="module")
def hub(running_cluster, folder):
    with a_hub_in_use(running_cluster, folder) as running:
        yield running


def opened(visit, hub, user="admin", query="", **looks):
    page = visit(hub, user, **looks)
    open_the_page(page, hub, query)
    return page


def row(page, name):
    """Return the cells of the first row of this name."""
    return page.get_by_role("row", name=name).first.get_by_role("cell").all_inner_texts()


@LOOKS
@pytest.mark.parametrize("user", ["admin", "eve"])
def test_the_page_is_accessible_and_no_wider_than_its_window(hub, visit, user, theme, size):
    page = opened(visit, hub, user, theme=theme, size=size)

    assert findings_in(page, PAGE) == []
    assert overflow(page) == 0
    picture(page, f"gpus-{user}-{theme}")


@SCRIPT
def test_an_administrator_finds_a_server_and_stops_it(hub, visit, script):
    if not hub.server("ann"):
        hub.start_until_ready("ann", {"accelerator": "a100", "gpus": 4})
    page = opened(visit, hub, script=script)
    page.get_by_label("Owner, server, accelerator or node").fill("ann")
    page.get_by_role("button", name="Find").click()
    servers = page.get_by_role("region", name="Servers")
    expect(servers.get_by_role("button", name="Stop")).to_have_count(1)

    servers.get_by_role("button", name="Stop ann").click()

    expect(servers.get_by_role("button", name="Stop")).to_have_count(0)
    expect(page.get_by_label("Owner, server, accelerator or node")).to_have_value("ann")
    wait_for(lambda: not hub.server("ann"))


def test_figures_follow_the_cluster_and_keep_the_focus(hub, visit):
    page = opened(visit, hub)
    page.locator(f"{PAGE}[data-live]").wait_for()
    before = row(page, "NVIDIA T4")
    button = page.get_by_role("button", name="Stop bob")
    button.focus()

    hub.start_until_ready("finn", {"accelerator": "t4", "gpus": 1})

    t4 = page.get_by_role("row", name="NVIDIA T4").first
    expect(t4.get_by_role("cell").nth(2)).to_have_text(str(int(before[2]) + 1))
    expect(page.get_by_role("button", name="Stop finn")).to_be_visible()
    expect(button).to_be_focused()
    hub.stop("finn")
    expect(page.get_by_role("button", name="Stop finn")).to_have_count(0)


def test_open_pages_ask_at_different_times_for_a_change_that_all_hear_of_at_once(hub, visit):
    asked = []
    told = 'retry: 20000\ndata: {"is": "1"}\n\n'
    page = visit(hub, "eve")
    page.clock.install(time=0)
    page.clock.pause_at(1)  # however slow the machine is, only the test lets time pass
    page.add_init_script("Math.random = () => 0.5")
    page.route(
        "**/gpus/stream/**", lambda it: it.fulfill(body=told, content_type="text/event-stream")
    )
    page.on("request", lambda it: asked.append(it.url))
    with page.expect_request_finished(lambda it: "/gpus/stream/" in it.url):
        open_the_page(page, hub)
    figures = f"{page.url}/figures"

    page.clock.run_for(1000)
    assert figures not in asked
    with page.expect_request(figures):
        page.clock.run_for(10_000)


def test_a_page_whose_question_failed_asks_again_though_nothing_changes_any_more(hub, visit):
    page = visit(hub, "eve")
    figures = f"{hub.url}/hub/gpuspawner/gpus/figures"
    page.clock.install()
    page.route(figures, lambda it: it.abort())
    with page.expect_event("requestfailed", lambda it: it.url == figures):
        open_the_page(page, hub)
    page.unroute(figures)

    page.clock.run_for(11_000)

    page.locator(f"{PAGE}[data-live]").wait_for()


OLD = "We can't refresh these figures right now."
ABORTING = """AbortSignal.timeout = (milliseconds) => {
  const aborting = new AbortController();
  setTimeout(() => aborting.abort(), milliseconds); /* by the test's clock */
  return aborting.signal;
};"""


def test_a_page_whose_question_nobody_answers_says_so_and_asks_again(hub, visit):
    page = visit(hub, "eve")
    figures = f"{hub.url}/hub/gpuspawner/gpus/figures"
    page.add_init_script(ABORTING)
    page.clock.install()
    page.route(figures, lambda _: None)
    with page.expect_request(figures):
        open_the_page(page, hub)

    page.clock.run_for(35_000)
    expect(page.get_by_role("status")).to_have_text(OLD)
    page.unroute(figures)
    page.clock.run_for(11_000)

    page.locator(f"{PAGE}[data-live]").wait_for()
    expect(page.get_by_role("status")).to_have_text("")


def test_after_a_logout_an_open_page_says_so_and_begins_no_login(hub, visit):
    """With OAuth, it would replace the state of a login that has begun in another window."""
    page = opened(visit, hub, "eve")
    page.locator(f"{PAGE}[data-live]").wait_for()
    logins = hub.log.count(" GET /hub/login")
    cookies = page.context.cookies()

    page.context.clear_cookies()
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")

    expect(page.get_by_role("status")).to_have_text(OLD)
    link = page.get_by_role("link", name="Your login has ended. Log in again.")
    expect(link).to_have_attribute("href", "/hub/login?next=%2Fhub%2Fgpuspawner%2Fgpus")
    assert hub.log.count(" GET /hub/login") == logins

    page.context.add_cookies(cookies)  # as somebody who logs in again in another window
    expect(page.get_by_role("status")).to_have_text("")
    expect(link).to_have_count(0)


MOVING = """() => {
  const ask = fetch;
  const servers = document.querySelector("[data-part=servers]");
  window.times = {};
  window.fetch = async (address, ...more) => {
    const answer = await ask(address, ...more);
    if (address.endsWith("/figures")) {
      times.moved ??= performance.now();
      servers.dispatchEvent(new PointerEvent("pointermove", { bubbles: true }));
    }
    return answer;
  };
  const changed = () => { if (times.moved) times.changed ??= performance.now(); };
  new MutationObserver(changed).observe(servers, { childList: true, subtree: true });
}"""


def test_rows_do_not_move_under_a_pointer_that_has_just_moved(hub, visit):
    """It may be about to press the button that was there."""
    page = opened(visit, hub)
    page.locator(f"{PAGE}[data-live]").wait_for()
    page.evaluate(MOVING)

    hub.start_until_ready("abe", {"accelerator": "t4", "gpus": 1})

    expect(page.get_by_role("button", name="Stop abe")).to_be_visible()
    hub.stop("abe")
    assert page.evaluate("times.changed - times.moved") >= 1500


# The page may replace what it shows between two steps of a test; then it has neither box nor style.


def box_of(shown):
    """Return where something is shown."""
    return wait_for(shown.bounding_box)


def style_of(shown, name):
    """Return how something is shown."""
    return wait_for(lambda: shown.evaluate(f"(it) => getComputedStyle(it).{name}"))


@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_a_phone_shows_numbers_beside_the_names_and_each_heading_in_one_line(hub, visit, language):
    page = opened(visit, hub, "eve", size=PHONE, language=language)
    table = page.locator(".gpus-wide").first
    heading = table.locator("thead th.gpus-ours")
    box = box_of(heading)
    bar = box_of(table.locator(".gpus-bar svg").first)
    wide = box_of(table)

    assert box["x"] + box["width"] <= PHONE["width"]
    assert box["height"] < 35
    assert page.title() == ("GPUs" if language == "en" else "GPU")
    assert bar["width"] == pytest.approx(wide["width"], abs=1)


def test_a_long_name_leaves_the_buttons_in_view(hub, visit):
    name = "a" + "verylongusername" * 7
    hub.start_until_ready(name, {"accelerator": "t4", "gpus": 1})
    page = opened(visit, hub)

    box = box_of(page.get_by_role("button", name="Stop bob"))
    hub.stop(name)

    assert box["x"] + box["width"] <= DESKTOP["width"]


@LOOKS
def test_a_table_that_has_the_focus_is_seen(hub, visit, theme, size):
    page = opened(visit, hub, "eve", theme=theme, size=size)
    page.locator(".gpus-wide").focus()

    assert ring_contrast(page, ".gpus-wide:focus-visible") >= 3


def test_free_gpus_have_the_colour_that_they_have_on_the_form(hub, visit):
    page = visit(hub, "eve")
    on_the_form = style_of(page.locator(".gpuspawner-lit").first, "backgroundColor")
    open_the_page(page, hub)
    states = {
        it: style_of(page.locator(f"rect.gpus-{it}").first, "fill")
        for it in ("free", "ours", "away")
    }

    assert states["free"] == on_the_form
    assert len({*states.values()}) == 3


def test_columns_are_sorted_by_the_keyboard_alone(hub, visit):
    page = opened(visit, hub)
    link = page.get_by_role("link", name="Node", exact=True)
    link.focus()
    page.keyboard.press("Enter")

    expect(page.get_by_role("columnheader", name="Node", exact=True).first).to_have_attribute(
        "aria-sort", "ascending"
    )
    assert "order=node" in page.url


def test_on_paper_there_are_the_figures_and_no_buttons(hub, visit):
    page = opened(visit, hub)
    page.emulate_media(media="print")

    expect(page.get_by_role("button", name="Stop bob")).to_be_hidden()
    expect(page.locator("nav").first).to_be_hidden()
    assert row(page, "NVIDIA T4")
    picture(page, "gpus-print")
