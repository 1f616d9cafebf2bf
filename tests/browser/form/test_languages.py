"""The spawn form and its refusal in languages that are longer, or written from right to left."""

from __future__ import annotations

from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.accessibility import findings, overflow
from tests.browser.languages import LOOKS, PSEUDO, cut_off, english
from tests.browser.states import CONFIGURATION
from tests.browser.visiting import BY_KEY, Theme, Visit, card, choose, live, picture, refuse
from tests.hub.running import RunningHub

FORM = ".gpuspawner"


def check(page: Page, language: str, name: str) -> None:
    """Look for English, for texts that are cut off, and for what axe finds."""
    picture(page, name)
    if language in PSEUDO:
        assert english(page, FORM, CONFIGURATION) == []
    assert cut_off(page, FORM) == []
    assert overflow(page) <= 0
    assert findings(page) == []


@LOOKS
def test_the_form_is_in_the_reader_s_language_and_has_room_for_it(
    visit: Visit, hub: RunningHub, language: str, theme: Theme, size: ViewportSize
) -> None:
    page = visit(hub, language=language, theme=theme, size=size)
    live(page)
    expect(page.locator(FORM)).to_have_attribute("lang", language)
    choose(page, BY_KEY["a100"])
    expect(page.get_by_role("status")).not_to_be_empty()
    check(page, language, f"form-{language}-{theme}")

    refuse(page)
    live(page)
    check(page, language, f"refusal-{language}-{theme}")


def test_a_language_from_right_to_left_has_its_states_on_the_left(
    visit: Visit, hub: RunningHub
) -> None:
    page = visit(hub, language="ar-XB")

    expect(page.locator(FORM)).to_have_attribute("dir", "rtl")
    name = card(page, BY_KEY["a100"]).locator("label").first.bounding_box()
    state = card(page, BY_KEY["a100"]).locator(".gpuspawner-word").bounding_box()
    assert name is not None
    assert state is not None
    assert state["x"] < name["x"]


def test_a_chinese_reader_reads_chinese_also_when_the_form_changes(
    visit: Visit, hub: RunningHub
) -> None:
    page = visit(hub, language="zh-CN,zh;q=0.9,en;q=0.8")
    live(page)

    expect(card(page, BY_KEY["a100"])).to_contain_text("共 8 个，6 个空闲，单台机器最多 4 个")
    choose(page, BY_KEY["a100"])
    expect(page.get_by_role("status")).to_have_text("目前有足够的空间。")
    refuse(page)
    expect(page.get_by_role("alert")).to_contain_text("目前没有空闲的 NVIDIA T4")
