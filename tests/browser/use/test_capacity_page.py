"""The page that says what becomes of many servers, as administrators see it."""

import pytest
from playwright.sync_api import expect

from tests.browser.accessibility import findings_in, overflow
from tests.browser.use_stage import PAGE, a_hub_in_use, ask_about_a_course, open_the_page
from tests.browser.visiting import LOOKS, SCRIPT, picture

LINK = "How many servers can start now?"


@pytest.fixture(scope="module")
def hub(running_cluster, folder):
    with a_hub_in_use(running_cluster, folder) as running:
        yield running


@SCRIPT
def test_an_administrator_asks_about_a_course(hub, visit, script):
    page = visit(hub, "admin", script=script)
    open_the_page(page, hub)
    ask_about_a_course(page)

    rows = page.get_by_role("region", name="Answer").get_by_role("row")
    expect(rows).to_have_count(3)
    expect(rows.nth(1)).to_have_text("5start on the nodes that exist")
    expect(rows.nth(2)).to_have_text("4aren't allowed")
    expect(page.get_by_text("The policy course allows 5. It says: ")).to_be_visible()
    expect(page.get_by_label("Server", exact=True).locator(":checked")).to_have_text(
        "1 × NVIDIA T4"
    )
    page.get_by_role("link", name="GPUs", exact=True).last.click()
    expect(page.get_by_role("link", name=LINK)).to_be_visible()


@LOOKS
@pytest.mark.parametrize("servers", ["9", "0"])
def test_the_page_is_accessible_and_no_wider_than_its_window(hub, visit, servers, theme, size):
    page = visit(hub, "admin", theme=theme, size=size)
    asked = '{"accelerator": "t4", "gpus": 1}'
    page.goto(f"{hub.url}/hub/gpuspawner/gpus/capacity?offer={asked}&servers={servers}")
    page.locator(PAGE).wait_for()

    assert findings_in(page, PAGE) == []
    assert overflow(page) == 0
    picture(page, f"capacity-{servers}-{theme}")
