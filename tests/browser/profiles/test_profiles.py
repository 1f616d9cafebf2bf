"""KubeSpawner's page of profiles in Chromium: states that follow the cluster, and buttons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from gpuspawner.preflight.availability import State
from localcluster import LocalCluster
from tests.browser import languages
from tests.browser.accessibility import findings_in, overflow
from tests.browser.states import NAMESPACE, Case, Scene
from tests.browser.visiting import PHONE, Theme, Visit, is_a_start, picture
from tests.hub.pods import Pods
from tests.hub.running import RunningHub, running_hub
from tools import pseudo

A100 = Case("pf-a100", State.FREE, "", nodes=1, gpus=4, held=(2,))
GPU: dict[str, Any] = {
    "display_name": "NVIDIA A100",
    "description": "40 GB, for training",
    "slug": "gpu",
    "kubespawner_override": {"node_selector": {"browser": A100.key}},
    "profile_options": {
        "gpus": {
            "display_name": "GPUs",
            "choices": {
                str(count): {
                    "display_name": str(count),
                    "kubespawner_override": {"extra_resource_limits": {"nvidia.com/gpu": count}},
                }
                for count in (1, 2, 4)
            },
        }
    },
}
# Browsers can't check this expression themselves, so the hub has to.
QUAY = r"^quay\.io/[a-z0-9/._-]+:[a-z0-9._-]+$"
CPU: dict[str, Any] = {
    "display_name": "CPU only",
    "slug": "cpu",
    "description": "For courses",
    "profile_options": {
        "image": {
            "display_name": "Software",
            "choices": {"python": {"display_name": "Python"}},
            "unlisted_choice": {
                "enabled": True,
                "display_name": "Your own image",
                "validation_regex": QUAY,
                "validation_message": "An image of quay.io with a tag",
                "kubespawner_override": {"image": "{value}"},
            },
        }
    },
}
HUGE: dict[str, Any] = {
    "display_name": "Large memory",
    "slug": "huge",
    "kubespawner_override": {"mem_guarantee": "900G"},
}
CONFIGURATION = f"""
import gpuspawner

c.KubeSpawner.namespace = {NAMESPACE!r}
c.KubeSpawner.profile_list = {[CPU, GPU, HUGE]!r}
c.KubeSpawner.http_timeout = 5
gpuspawner.configure(c)
"""


@pytest.fixture(scope="module")
def hub(
    scene: Scene,
    reporting_cluster: LocalCluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RunningHub]:
    names = scene.add(A100)
    environment = {"KUBECONFIG": str(reporting_cluster.kubeconfig)}
    folder = tmp_path_factory.mktemp("profiles")
    pods = Pods(reporting_cluster, NAMESPACE)
    configuration = pseudo.write(folder / "locale") + CONFIGURATION
    with running_hub(folder, configuration, environment=environment, pods=pods) as running:
        running.until_it_sees_the_cluster()
        yield running
    reporting_cluster.remove_nodes(names)


def live(page: Page) -> None:
    page.locator(".gpuspawner-profiles[data-live]").wait_for(state="attached")


def test_the_states_of_profiles_follow_the_cluster_by_a_stream_alone(
    hub: RunningHub, scene: Scene, visit: Visit
) -> None:
    page = visit(hub, "ann", shown="#kubespawner-profiles-list")
    live(page)
    expect(page.locator("[data-gpuspawner-profile=gpu]")).to_have_text("Free 2 of 4 free")
    picture(page, "profiles")
    huge = page.locator("[data-gpuspawner-profile=huge]")
    expect(huge).to_have_text("Not available no machine here can provide it")
    assert page.locator("[data-gpuspawner-profile=cpu]").count() == 0

    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    scene.let_go(A100, 0)
    page.get_by_text("4 of 4 free").first.wait_for()
    four = page.locator("select option[value='4']")
    expect(four).to_have_text("4 (Free: 4 of 4 free)")
    scene.hold(A100, 0, 2)
    page.get_by_text("Free 2 of 4 free", exact=True).wait_for()
    expect(four).to_have_text("4 (In use: 2 of 4 free)")
    assert page.locator(".gpuspawner-answer").inner_text() == ""
    assert asked == []


@pytest.mark.parametrize(("theme", "script"), [("light", True), ("dark", True), ("light", False)])
def test_an_alternative_starts_with_one_click(
    theme: Theme, script: bool, hub: RunningHub, visit: Visit
) -> None:
    name = f"one-click-{theme}-{script}".lower()
    page = visit(hub, name, theme=theme, script=script, shown="#kubespawner-profiles-list")
    page.locator("input[value=gpu]").check()
    page.locator("select[name='profile-option-gpu--gpus']").select_option("4")
    with page.expect_response(is_a_start) as refused:
        page.locator("#spawn_form button.btn-jupyter").click()
    assert refused.value.status == 409
    told = page.locator(".gpuspawner-message")
    told.wait_for()
    picture(page, f"profiles-refused-{theme}-{'script' if script else 'no-script'}")

    assert told.inner_text() == (
        "“NVIDIA A100” with “4” can't start right now. "
        "You asked for 4 × GPU, but only 2 are free right now."
    ).replace(". You", ".\nYou")
    assert not page.locator(".spawn-error-msg").is_visible()
    buttons = page.locator("button[name=gpuspawner-instead]")
    assert buttons.all_inner_texts() == ["Start “NVIDIA A100” with “1”", "Start “CPU only”"]
    if script:  # axe is a script
        assert findings_in(page, ".gpuspawner") == []

    with page.expect_response(is_a_start) as started:
        buttons.first.click()
    assert started.value.status in (200, 302)
    server = hub.pods.bound(name)["spec"]["containers"][0]
    assert server["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert hub.server(name)["user_options"] == {"profile": "gpu", "gpus": "1"}
    # No server runs on this cluster, so the start ends with its pod.
    hub.pods.delete(name)
    hub.events_end(name)


def test_a_refusal_goes_once_it_is_no_longer_true_and_a_button_once_its_choice_is_taken(
    hub: RunningHub, scene: Scene, reporting_cluster: LocalCluster, visit: Visit
) -> None:
    pages = [visit(hub, name, shown="#kubespawner-profiles-list") for name in ("kim", "lee")]
    for page in pages:
        page.locator("input[value=gpu]").check()
        page.locator("select[name='profile-option-gpu--gpus']").select_option("4")
        page.locator("#spawn_form button.btn-jupyter").click()
        expect(page.locator(".gpuspawner-refusal")).to_be_focused()
        live(page)
    kim, lee = pages
    buttons = kim.locator("button[name=gpuspawner-instead]:visible")

    lee.locator("input[value=cpu]").check()
    expect(lee.locator(".gpuspawner-refusal")).to_be_hidden()
    [node] = A100.group.node_names()
    reporting_cluster.kubectl("cordon", node)
    expect(kim.locator("[data-gpuspawner-profile=gpu]")).to_contain_text("Offline")
    expect(buttons).to_have_text(["Start “CPU only”"])
    expect(kim.locator(".gpuspawner-refusal")).to_be_visible()

    scene.let_go(A100, 0)
    reporting_cluster.kubectl("uncordon", node)
    expect(kim.locator("[data-gpuspawner-profile=gpu]")).to_have_text("Free 4 of 4 free")
    expect(kim.locator(".gpuspawner-refusal")).to_be_hidden()
    expect(kim.locator(".spawn-error-msg")).to_be_hidden()
    scene.hold(A100, 0, 2)


def test_a_refused_text_stays_and_no_other_image_starts_at_the_next_click(
    hub: RunningHub, visit: Visit
) -> None:
    page = visit(hub, "eve", shown="#kubespawner-profiles-list")
    software = page.locator(".js-profile-option-select").first
    own = page.locator("input.js-other-input")
    software.select_option("unlisted-choice")
    own.fill("docker.io/evil:1")

    for _ in range(2):
        with page.expect_response(is_a_start) as refused:
            page.locator("#spawn_form button.btn-jupyter").click()
        assert refused.value.status == 400
        told = page.get_by_role("alert")
        expect(told).to_be_focused()
        expect(told).to_contain_text("Your own image: 'docker.io/evil:1' isn't allowed.")
        expect(software).to_have_value("unlisted-choice")
        expect(own).to_have_value("docker.io/evil:1")


@pytest.mark.parametrize(("language", "theme"), [("zxx", "light"), ("ar-XB", "dark")])
def test_profiles_and_a_refusal_are_in_the_reader_s_language(
    language: str, theme: Theme, hub: RunningHub, visit: Visit
) -> None:
    place = "[data-gpuspawner-profile], .gpuspawner, .gpuspawner-profiles"
    name = f"reads-{language}".lower()
    page = visit(
        hub,
        name,
        theme=theme,
        size=PHONE,
        language=language,
        shown="#kubespawner-profiles-list",
    )
    live(page)
    page.locator("input[value=gpu]").check()
    page.locator("select[name='profile-option-gpu--gpus']").select_option("4")
    with page.expect_response(is_a_start) as refused:
        page.locator("#spawn_form button.btn-jupyter").click()
    assert refused.value.status == 409
    page.locator(".gpuspawner-message").wait_for()
    live(page)
    picture(page, f"profiles-{language}")

    assert languages.english(page, place, CONFIGURATION) == []
    assert languages.cut_off(page, ".gpuspawner") == []
    assert overflow(page) <= 0
