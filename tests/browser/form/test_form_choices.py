"""Choosing on the spawn form, and its refusals, with and without a script."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Route, expect

from tests.browser.visiting import (
    BY_KEY,
    SCRIPT,
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

STRICT = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'"
)


@pytest.mark.parametrize(
    ("script", "server"), [(True, ""), (False, "work")], ids=["script", "no-script and named"]
)
def test_a_refused_form_keeps_the_choices_and_offers_an_alternative(
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
def test_enter_presses_the_start_button(visit: Visit, hub: RunningHub, script: bool) -> None:
    page = visit(hub, "cleo", script=script)
    refuse(page)

    radio = card(page, BY_KEY["t4"]).get_by_role("radio")
    with page.expect_response(is_a_start) as answer:
        radio.press("Enter")

    assert answer.value.status == 409
    expect(card(page, BY_KEY["t4"]).get_by_role("radio")).to_be_checked()


def test_options_that_no_machine_has_together_are_disabled_and_explained(
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
    expect(hint).to_contain_text("aren't available, or can't be combined with your other choices")
    expect(card(page, BY_KEY["h100"]).get_by_role("radio")).to_be_disabled()


def test_without_a_script_the_hub_refuses_options_that_no_machine_has(
    visit: Visit, hub: RunningHub
) -> None:
    page = visit(hub, "fay", script=False)
    choose(page, BY_KEY["a100"], gpus="4", memory="128Gi")

    assert start(page).status == 409
    told = "No machine here has 4 × NVIDIA A100 together with the 128 GiB of memory"
    expect(page.get_by_role("alert")).to_contain_text(told)
    expect(page.locator("select[name=memory]")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("button", name="Start with 4 × NVIDIA A100")).to_be_visible()


def test_a_field_is_marked_only_if_another_choice_in_it_would_help(
    visit: Visit, hub: RunningHub
) -> None:
    page = visit(hub, "ida")
    live(page)
    choose(page, BY_KEY["t4"])

    expect(page.locator("select[name=gpus--t4]")).to_have_text("1 (not free now)")
    expect(page.locator("select[name=cpu] option").first).to_have_text("1 core")


def test_the_form_works_under_a_strict_content_security_policy(
    visit: Visit, hub: RunningHub
) -> None:
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
