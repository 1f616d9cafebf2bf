"""The page of jupyterhub-fancy-profiles, which most hubs of 2i2c use, shows our words as text."""

from __future__ import annotations

import copy
import secrets
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from localcluster import Fleet, LocalCluster, NodeGroup
from tests.browser.visiting import is_a_start
from tests.hub.pods import Pods
from tests.hub.running import RunningHub, running_hub
from tests.servers import single_user
from tests.unit.makers import profile_lists as lists
from tests.waiting import PATIENCE

CONFIGURATION = """
from jupyterhub_fancy_profiles import setup_ui
from kubespawner import KubeSpawner
import gpuspawner
class CustomSpawner(KubeSpawner):
    pass
c.JupyterHub.spawner_class = CustomSpawner
c.KubeSpawner.namespace = {namespace!r}
c.KubeSpawner.cmd = {server!r}
c.KubeSpawner.profile_list = {profiles!r}
setup_ui(c)
gpuspawner.configure(c)
"""
CPU = {"display_name": "CPU only", "slug": "cpu", "description": "For courses"}
GPU = copy.deepcopy({**lists.GPU, "display_name": "GPU server", "description": "For training"})
GPU["profile_options"]["image"]["unlisted_choice"]["display_name_in_choices"] = "Other…"
IMAGE = "quay.io/jupyter/my-own:2026"


@pytest.fixture(scope="module")
def hub(
    running_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningHub]:
    namespace = f"fancy-{secrets.token_hex(4)}"
    running_cluster.api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "2"}
    fleet = Fleet((NodeGroup("a100", 1, amounts, labels={"gpu": "a100"}),))
    nodes = running_cluster.add_nodes(fleet)
    lines = CONFIGURATION.format(
        namespace=namespace, server=single_user.COMMAND, profiles=[CPU, GPU]
    )
    pods = Pods(running_cluster, namespace)
    environment = {"KUBECONFIG": str(running_cluster.kubeconfig)}
    folder = tmp_path_factory.mktemp("fancy")
    with running_hub(folder, lines, environment=environment, pods=pods) as running:
        running.until_it_sees_the_cluster()
        yield running
    running_cluster.api.delete(pods.path, grace=0)
    running_cluster.remove_nodes(nodes)


@pytest.fixture
def page(browser: Browser, hub: RunningHub) -> Iterator[Page]:
    page = browser.new_context().new_page()
    page.set_default_timeout(1000 * PATIENCE)
    page.goto(f"{hub.url}/hub/login?next=/hub/spawn")
    page.fill("#username_input", "bob")
    page.fill("#password_input", "any")
    page.click("#login_submit")
    page.locator(".profile-select").first.wait_for()
    yield page
    page.context.close()


def test_states_are_words_and_a_refusal_keeps_the_choices_and_the_custom_image(
    hub: RunningHub, page: Page
) -> None:
    gpu = page.locator("#profile-gpu")
    expect(gpu).to_contain_text("For training (Free: 2 of 2 free)")
    expect(gpu).to_contain_text("One (Free: 2 of 2 free)")
    expect(page.locator("#spawn_form")).not_to_contain_text("<")
    expect(page.locator("#profile-cpu p")).to_have_text("For courses")

    hub.start_until_ready("alice", {"profile": "gpu", "gpus": "two"})
    gpu.get_by_role("radio").check()
    _select(page, "Image", "Other…")
    page.get_by_label("Another image", exact=True).fill(IMAGE)
    with page.expect_response(is_a_start) as answer:
        page.get_by_role("button", name="Start").click()

    assert answer.value.status == 409
    expect(page.locator(".alert, .error, [role=alert]").first).to_contain_text(
        "“GPU server” with “One” can't start right now. No GPU is free right now"
    )
    expect(gpu.get_by_role("radio")).to_be_checked()
    expect(gpu).to_contain_text("For training (In use: all 2 are in use)")
    expect(page.get_by_label("Another image", exact=True)).to_have_value(IMAGE)
    expect(page.locator("#spawn_form")).not_to_contain_text("<")


def _select(page: Page, name: str, choice: str) -> None:
    page.locator("#profile-gpu").get_by_label(name).click()
    page.get_by_role("option", name=choice).click()
