"""The hub's pages after a start that failed, without a browser: on each version of the hub."""

from __future__ import annotations

import pytest

from tests.fixtures.cluster import AddNodes
from tests.hub.configurations import ANSWER_AT_ONCE, T4, t4_nodes
from tests.hub.kept import LendHub
from tests.hub.running import RunningHub

pytestmark = pytest.mark.each_hub

FAILING = """
def misconfigure(spawner):
    if spawner.user.name == "uma":
        spawner.extra_pod_config = {"secret-of-the-hub": "KubeSpawner knows no such field"}
c.Spawner.pre_spawn_hook = misconfigure

def fail(spawner, pod):
    faults = {"pull-error": "not-found"}
    if spawner.user.name == "cleo":
        faults = {"hangs": "true", "exits-after": "1", "exit-output": "ImportError: torch"}
    for fault, value in faults.items():
        pod.metadata.annotations[f"localcluster/{fault}"] = value
    return pod
c.KubeSpawner.modify_pod_hook = fail
c.KubeSpawner.http_timeout = 2
"""
NO_IMAGE = "There is no image"


@pytest.fixture
def hub(kept_hub: LendHub, add_nodes: AddNodes) -> RunningHub:
    add_nodes(t4_nodes(1, 2))
    return kept_hub(f"{ANSWER_AT_ONCE}{T4}{FAILING}")


def test_a_failure_is_told_on_the_page_of_the_server_and_on_the_next_form(hub: RunningHub) -> None:
    ann = hub.person("ann")
    assert hub.start("ann", {"accelerator": "t4"}).status_code == 202
    assert NO_IMAGE in hub.events("ann")[-1]["message"]

    for path in ("/hub/spawn-pending/ann", "/user/ann/lab"):
        page = ann.open(path)
        assert page.status < 500
        assert NO_IMAGE in page.text, path
    assert f"Your last start failed: {NO_IMAGE}" in ann.open("/hub/spawn").text
    assert NO_IMAGE not in hub.person("bob").open("/hub/spawn").text


def test_an_error_that_nobody_foresaw_is_told_without_its_words(hub: RunningHub) -> None:
    hub.expect_errors("uma", "Exception in Future", "] {")
    uma = hub.person("uma")
    assert hub.start("uma", {"accelerator": "t4"}).status_code == 202
    told = "Your server couldn't start because of an error."
    assert hub.events("uma")[-1]["message"].startswith(f"Spawn failed: {told}")

    page = uma.open("/hub/spawn-pending/uma")
    assert told in page.text
    assert "secret-of-the-hub" not in page.html
    assert told in uma.open("/hub/spawn").text


def test_a_server_that_crashes_before_it_answers_is_not_told_as_running(hub: RunningHub) -> None:
    """A real kubelet takes 30 s for three crashes, which is as long as the hub waits."""
    assert hub.start("cleo", {"accelerator": "t4"}).status_code == 202
    assert hub.events("cleo")[-1]["message"] == (
        "Spawn failed: Your server crashed while it was starting. "
        "The last line of its log: “ImportError: torch”. Please try again later, or tell your "
        "administrator."
    )
