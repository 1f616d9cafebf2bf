"""What policies leave of KubeSpawner's profiles, on its own form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from localcluster import LocalCluster
from tests.browser.accessibility import findings_in
from tests.browser.policy_stage import GPU, a_hub_with
from tests.browser.visiting import Theme, Visit
from tests.hub.running import RunningHub
from tests.waiting import wait_for


def _gpus(count: int) -> dict[str, Any]:
    return {"extra_resource_limits": {GPU: count}, "node_selector": {"policies": "t4"}}


def _profile(name: str, description: str, gpus: int) -> dict[str, Any]:
    override = _gpus(gpus) if gpus else {}
    return {"display_name": name, "description": description, "kubespawner_override": override}


SMALL = {
    **_profile("Small", "1 or 2 GPUs", 1),
    "slug": "small",
    "profile_options": {
        "gpus": {
            "display_name": "GPUs",
            "choices": {
                str(count): {"display_name": str(count), "kubespawner_override": _gpus(count)}
                for count in (1, 2, 4)
            },
        }
    },
}
PROFILES = [
    _profile("CPU only", "For courses", 0),
    SMALL,
    {**_profile("Large", "2 GPUs", 2), "slug": "large"},
    {**_profile("Huge", "4 GPUs, for the research group", 4), "slug": "huge"},
    {**_profile("Retired", "Nobody has it", 1), "slug": "retired"},
]
POLICIES = {
    "everybody": {
        "gpus_per_server": 2,
        "gpus_per_user": 2,
        "explanation": "Two GPUs are enough for the exercises",
        "show_withheld": True,
    },
    "retired": {"profiles": ["cpu-only", "small", "large", "huge"]},
}
CONFIGURATION = f"c.KubeSpawner.profile_list = {PROFILES!r}\nc.GPUSpawner.policies = {POLICIES!r}"


@pytest.fixture(scope="module")
def hub(
    running_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningHub]:
    folder: Path = tmp_path_factory.mktemp("policies") / "hub"
    with a_hub_with(running_cluster, folder, CONFIGURATION) as running:
        for user in ("ann", "ben"):
            _start_training(running, user)
        yield running


def _start_training(hub: RunningHub, user: str) -> None:
    hub.api("POST", f"/users/{user}")
    hub.api("POST", f"/users/{user}/servers/train", {"profile": "small"})
    wait_for(lambda: hub.api("GET", f"/users/{user}").json()["servers"]["train"]["ready"])


def said(page: Page, profile: str) -> str:
    """The state of a profile, as the page shows it."""
    return page.locator(f"[data-gpuspawner-profile='{profile}']").inner_text()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_profile_says_why_it_cannot_be_had(
    visit: Visit, hub: RunningHub, theme: Theme
) -> None:
    page = visit(hub, "ann", theme=theme)

    assert said(page, "small").startswith("Free")
    assert said(page, "large") == "Limit reached you're using 1 of your 2 GPUs; stop a server first"
    assert said(page, "huge") == "Not offered Two GPUs are enough for the exercises."
    expect(page.get_by_text("Retired")).to_have_count(0)
    choices = page.locator("select[name='profile-option-small--gpus'] option").all_inner_texts()
    free = said(page, "small").removeprefix("Free ").removesuffix(" of 16 free")
    assert free in ("14", "15")  # without Ann's, and perhaps without Ben's
    assert [it.strip() for it in choices] == [
        f"1 (Free: {free} of 16 free)",
        "2 (Limit reached: you're using 1 of your 2 GPUs; stop a server first)",
        "4 (Not offered: Two GPUs are enough for the exercises.)",
    ]
    usage = page.get_by_role("group", name="What you can use")
    expect(usage).to_contain_text("You're using 1 of your 2 GPUs.")
    assert findings_in(page, ".gpuspawner-usage") == []


def test_stopping_a_server_on_the_page_frees_the_other_profiles(
    visit: Visit, hub: RunningHub
) -> None:
    page = visit(hub, "ben")
    gpus = page.locator("select[name='profile-option-small--gpus']")
    page.locator("input[value=small]").check()
    gpus.select_option("2")

    page.get_by_role("group", name="What you can use").get_by_role("button").click()

    expect(page.locator("[data-gpuspawner-profile='large']")).to_contain_text("Free")
    expect(page.locator("input[value=small]")).to_be_checked()
    expect(gpus).to_have_value("2")
