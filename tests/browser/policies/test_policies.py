"""What policies leave and deny, on the form and on the hub's pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect

from localcluster import LocalCluster
from tests.browser.accessibility import findings, overflow
from tests.browser.held_hubs import held_back
from tests.browser.policy_stage import (
    HOSTILE,
    ODD_NAME,
    a_hub_with_policies,
    give,
    give_ann_two_of_four,
    use_up_the_share,
)
from tests.browser.visiting import LOOKS, SCRIPT, Theme, Visit, live, start
from tests.hub.running import RunningHub
from tests.hub.versions import ANY_NAME


@pytest.fixture(scope="module")
def hub(running_cluster: LocalCluster, folder: Path) -> Iterator[RunningHub]:
    with a_hub_with_policies(running_cluster, folder) as running:
        give_ann_two_of_four(running)
        use_up_the_share(running)
        yield running


def usage(page: Page) -> Locator:
    return page.get_by_role("group", name="What you can use")


def card(page: Page, key: str) -> Locator:
    return page.locator(f"[data-accelerator='{key}']")


def choose(page: Page, key: str, gpus: int) -> None:
    card(page, key).get_by_role("radio").check()
    page.locator(f"select[name='gpus--{key}']").select_option(str(gpus))


def denial(page: Page) -> Locator:
    return page.locator(".gpuspawner-message")


@SCRIPT
def test_the_form_says_what_is_left_and_what_isn_t(
    visit: Visit, hub: RunningHub, script: bool
) -> None:
    page = visit(hub, "ann", script=script)
    if script:
        live(page)

    expect(usage(page)).to_contain_text("You're using 2 of your 4 GPUs.")
    expect(usage(page)).to_contain_text("You're using 1 of your 1 × NVIDIA A100.")
    assert usage(page).get_by_role("button").all_inner_texts() == ["Stop", "Stop"]
    for name in ("train", "demo"):
        expect(usage(page).get_by_role("button", name=f"Stop {name}")).to_be_visible()
    assert "private-thesis" not in page.content()

    expect(card(page, "a100")).to_have_attribute("data-state", "limited")
    expect(card(page, "a100")).to_contain_text("you're using 1 of your 1; stop a server first")
    expect(card(page, "t4")).to_have_attribute("data-state", "free")
    options = page.locator("select[name='gpus--t4'] option").all_inner_texts()
    assert options == ["1", "2", "4 (more than is left for you)"]

    withheld = page.get_by_role("list", name="Not offered to you")
    expect(withheld).to_contain_text("NVIDIA H100")
    expect(withheld).to_contain_text("H100s are for the research group.")
    expect(card(page, "h100")).to_have_count(0)
    expect(withheld.locator("input, button, select")).to_have_count(0)


@SCRIPT
def test_stopping_a_server_comes_back_to_the_form_which_counts_it_no_more(
    visit: Visit, hub: RunningHub, script: bool
) -> None:
    user = "stan" if script else "nora"
    give(hub, user, "train", gpus=4)
    page = visit(hub, user, "other", script=script)
    expect(card(page, "t4")).to_have_attribute("data-state", "limited")

    choose(page, "t4", 2)
    button = usage(page).get_by_role("button", name="Stop train")
    button.focus()
    button.press("Enter")
    expect(usage(page)).to_contain_text("You can use 4 GPUs at a time.")
    expect(usage(page).get_by_role("button")).to_have_count(0)
    assert page.url.partition("?")[0].endswith(f"/hub/spawn/{user}/other")
    expect(usage(page)).to_be_focused()
    expect(card(page, "t4")).to_have_attribute("data-state", "free")
    expect(card(page, "t4").get_by_role("radio")).to_be_checked()
    expect(page.locator("select[name='gpus--t4']")).to_have_value("2")


@SCRIPT
def test_a_denial_by_the_user_s_limit_names_the_figures_and_the_way_out(
    visit: Visit, hub: RunningHub, script: bool
) -> None:
    page = visit(hub, "ann", script=script)
    choose(page, "t4", 4)
    assert start(page).status == 409

    expect(denial(page)).to_have_text(
        "You can have 4 GPUs at a time, and you're using 2: demo and train. "
        "Stop one of these servers first, or choose a smaller one."
    )
    expect(denial(page)).to_be_focused()
    expect(card(page, "t4").get_by_role("radio")).to_be_checked()
    expect(usage(page).get_by_role("button", name="Stop train")).to_be_visible()


def test_a_denial_by_a_group_s_share_names_nobody_else(visit: Visit, hub: RunningHub) -> None:
    page = visit(hub, "cleo")
    expect(usage(page)).to_contain_text("The group ml-2026 uses 2 of its 3 GPUs.")
    expect(usage(page).get_by_role("button")).to_have_count(0)
    choose(page, "t4", 2)
    assert start(page).status == 409

    expect(denial(page)).to_have_text(
        "The course has three GPUs together. The group ml-2026 can have 3 GPUs at a time, and "
        "uses 2; your server would add 2 GPUs. Please choose a smaller server, or try again later."
    )
    for hidden in ("bob", "private-thesis"):
        assert hidden not in page.content()


def test_a_lifetime_is_told_before_and_after_the_start(
    visit: Visit, hub: RunningHub, folder: Path
) -> None:
    page = visit(hub, "kim")
    expect(usage(page)).to_contain_text("A server with a GPU ends after 12 hours.")

    with held_back(folder, "kim"):
        page.locator("#spawn_form button.btn-jupyter").click()
        expect(page.locator("#progress-log")).to_contain_text(
            "This server ends 12 hours after it starts. Save your work before then."
        )
    page.wait_for_url("**/user/kim/**")
    page.goto(f"{hub.url}/hub/home")
    expect(page.get_by_text("Your default server ends in")).to_be_visible()
    assert overflow(page) <= 0


@ANY_NAME
def test_an_explanation_and_a_name_with_markup_stay_text(visit: Visit, hub: RunningHub) -> None:
    give(hub, "gil", ODD_NAME)
    page = visit(hub, "gil")

    expect(usage(page)).to_contain_text(ODD_NAME)
    choose(page, "t4", 1)
    assert start(page).status == 409
    expect(denial(page)).to_contain_text(HOSTILE)
    expect(denial(page)).to_contain_text(ODD_NAME)
    assert page.title() != "taken over"
    expect(usage(page).get_by_role("button", name=f"Stop {ODD_NAME}")).to_be_visible()


def test_the_enter_key_starts_and_stops_nothing(visit: Visit, hub: RunningHub) -> None:
    """A form's first button is pressed by Enter; those that stop servers come before Start."""
    page = visit(hub, "ann")
    choose(page, "t4", 4)
    with page.expect_request(lambda it: it.method == "POST" and "/spawn/" in it.url):
        card(page, "t4").get_by_role("radio").press("Enter")
    expect(denial(page)).to_be_visible()
    assert set(hub.api("GET", "/users/ann").json()["servers"]) == {"train", "demo"}


@LOOKS
def test_axe_finds_no_problem_of_ours(
    visit: Visit, hub: RunningHub, theme: Theme, size: ViewportSize
) -> None:
    page = visit(hub, "ann", theme=theme, size=size)
    live(page)
    assert findings(page) == []
    assert overflow(page) <= 0

    choose(page, "a100", 1)
    assert start(page).status == 409
    live(page)
    assert findings(page) == []
    assert overflow(page) <= 0
