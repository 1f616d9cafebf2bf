"""The spawn form for axe, for narrow windows and for the keyboard."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.accessibility import findings, overflow, ring_contrast
from tests.browser.visiting import BY_KEY, LOOKS, Visit, card, live, refuse
from tests.hub.running import RunningHub


@LOOKS
def test_axe_finds_no_problem_of_ours(
    visit: Visit, hub: RunningHub, theme: str, size: dict[str, int]
) -> None:
    page = visit(hub, theme=theme, size=size)
    live(page)
    assert findings(page) == []
    assert overflow(page) <= 0

    refuse(page)
    live(page)
    assert findings(page) == []
    assert overflow(page) <= 0


@LOOKS
def test_what_has_the_focus_is_seen(
    visit: Visit, hub: RunningHub, theme: str, size: dict[str, int]
) -> None:
    page = visit(hub, theme=theme, size=size)
    page.get_by_role("radio", name="No GPU").focus()
    page.keyboard.press("ArrowDown")

    assert ring_contrast(page, ".gpuspawner-card:has(input:focus-visible)") >= 3


def test_the_form_fits_narrow_windows(visit: Visit, hub: RunningHub) -> None:
    """640 is a window of 1280 pixels at a zoom of 200 %, 320 the same at 400 %."""
    page = visit(hub)
    refuse(page)

    for width in (320, 550, 640, 800):
        page.set_viewport_size({"width": width, "height": 800})
        assert overflow(page) <= 0
        name = card(page, BY_KEY["a100"]).locator("label").first.bounding_box()
        whole = card(page, BY_KEY["a100"]).bounding_box()
        assert name is not None
        assert whole is not None
        assert name["width"] >= 0.38 * whole["width"]


def test_a_name_stays_in_one_line_while_the_card_has_room(visit: Visit, hub: RunningHub) -> None:
    page = visit(hub)
    its = card(page, BY_KEY["a100"])
    its.locator(".gpuspawner-detail").evaluate(
        "(it) => { it.textContent = 'all 4 are in use; 1 person is in line'; }"
    )
    name = its.locator("label").first
    before = name.bounding_box()
    name.evaluate("(it) => { it.textContent = 'NVIDIA A100 SXM4 40 GB MIG 3g.20gb'; }")
    after = name.bounding_box()

    assert before
    assert after
    assert after["height"] == before["height"]


def test_the_form_works_by_keyboard_alone(visit: Visit, hub: RunningHub) -> None:
    page = visit(hub, "dora")
    live(page)
    page.get_by_role("radio", name="No GPU").focus()
    page.keyboard.press("ArrowDown")  # wraps around to the first
    expect(card(page, BY_KEY["a100"]).get_by_role("radio")).to_be_checked()
    page.keyboard.press("Tab")
    expect(page.locator("select[name=gpus--a100]")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.locator("select[name=gpus--a100]")).to_have_value("2")
    expect(page.get_by_role("status")).to_contain_text("There is room for this right now.")
