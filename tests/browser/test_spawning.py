"""From the login to JupyterLab on a GPU, and to a refusal that names alternatives."""

from __future__ import annotations

import time

from playwright.sync_api import Page, expect

from tests.browser.conftest import People
from tests.hub.pods import Pods
from tests.waiting import wait_for

GPU = "nvidia.com/gpu"
T4 = "NVIDIA Tesla T4"
T4_IS_FREE = 'data-accelerator="tesla-t4" data-state="free"'


def choose(page: Page, accelerator: str, **sizes: str) -> None:
    page.get_by_role("radio", name=accelerator, exact=True).check()
    for name, value in sizes.items():
        page.locator(f"select[name={name}]").select_option(value)


def press_start(page: Page) -> None:
    page.get_by_role("button", name="Start").click()


def open_lab(page: Page) -> None:
    page.wait_for_url("**/lab*", timeout=120_000)
    expect(page.locator("#jp-main-dock-panel")).to_be_visible(timeout=120_000)


def test_one_user_gets_jupyterlab_on_a_gpu_and_the_next_is_refused(
    people: People, pods: Pods
) -> None:
    alice, bob = people.log_in("alice"), people.log_in("bob")
    choose(alice, T4, memory="4Gi")
    press_start(alice)
    open_lab(alice)

    running = pods.bound("alice")
    server = running["spec"]["containers"][0]
    assert running["spec"]["nodeName"] == "t4-0"
    assert server["resources"]["limits"] == {GPU: "1", "memory": "4Gi", "cpu": "1"}
    assert server["resources"]["requests"] == server["resources"]["limits"]

    choose(bob, T4, memory="8Gi", cpu="2")
    press_start(bob)

    expect(bob.get_by_role("alert")).to_contain_text("in use right now")
    expect(bob.get_by_role("alert")).not_to_contain_text("alice")
    expect(bob.get_by_role("radio", name=T4, exact=True)).to_be_checked()
    expect(bob.locator("select[name=memory]")).to_have_value("8Gi")
    expect(bob.locator("select[name=cpu]")).to_have_value("2")
    assert pods.names() == {"jupyter-alice"}


def test_a_gpu_is_free_within_a_second_of_its_pod_s_end(people: People, pods: Pods) -> None:
    carol, dan = people.log_in("carol"), people.log_in("dan")
    choose(carol, T4)
    press_start(carol)
    carol.wait_for_url("**/lab*", timeout=120_000)

    carol.goto(f"{people.url}/hub/home")
    carol.get_by_role("button", name="Stop My Server").click()
    wait_for(lambda: not pods.all())
    gone = time.monotonic()
    wait_for(lambda: T4_IS_FREE in dan.request.get(f"{people.url}/hub/spawn").text())
    assert time.monotonic() - gone < 1
    dan.reload()
    choose(dan, T4)
    press_start(dan)
    dan.wait_for_url("**/lab*", timeout=120_000)
    assert pods.bound("dan")["spec"]["nodeName"] == "t4-0"


def test_an_empty_pool_grows_for_the_one_who_asks(people: People, pods: Pods) -> None:
    dave = people.log_in("dave")
    choose(dave, "NVIDIA L4")
    press_start(dave)

    told = "A new machine is starting for you"
    expect(dave.locator("body")).to_contain_text(told, timeout=30_000)
    dave.wait_for_url("**/lab*", timeout=120_000)
    assert pods.bound("dave")["spec"]["nodeName"] == "l4-0"
