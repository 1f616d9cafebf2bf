"""What a start asks for that says nothing: what was granted last, or stored without a start."""

from __future__ import annotations

import jupyterhub
import pytest

from tests.fixtures.cluster import AddNodes
from tests.hub.configurations import ANSWER_AT_ONCE, t4_nodes
from tests.hub.conftest import StartGPUHub
from tests.waiting import wait_for

OFFERS = """
c.JupyterHub.allow_named_servers = True
c.GPUSpawner.accelerators = {"t4": {"display_name": "Tesla T4", "node_selector": {"gpu": "t4"}}}
c.GPUSpawner.default_accelerator = ""
c.GPUSpawner.images = {"old": {"image": "old:1"}, "new": {"image": "new:1"}}
c.GPUSpawner.memory_choices = ["1Gi", "2Gi"]
"""
WITHOUT_OLD = 'c.GPUSpawner.images = {"new": {"image": "new:1"}}'
CHOSEN = {"accelerator": None, "gpus": 0, "image": "old", "memory": "2Gi", "cpu": None}


def test_a_choice_that_has_gone_is_replaced_with_a_word(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes
) -> None:
    add_nodes(t4_nodes(1, 1))
    with start_gpu_hub(OFFERS + ANSWER_AT_ONCE) as hub:
        hub.start("alice", CHOSEN)
        hub.until_ready("alice")
        hub.stop("alice")

        hub.configure_anew(WITHOUT_OLD)

        page = hub.person("alice").open("/hub/spawn")
        assert "What you cannot choose now: image 'old'." in page.text
        assert (page.chosen["image"], page.chosen["memory"]) == ("new", "2Gi")
        hub.start("alice")
        told = [event["message"] for event in hub.events("alice")]
        assert any("starts with image new in place of image 'old'." in text for text in told)
        assert hub.until_ready("alice")["user_options"] == {**CHOSEN, "image": "new"}

        hub.stop("alice")
        assert "any more" not in hub.person("alice").open("/hub/spawn").text


def test_what_was_refused_is_neither_the_next_start_nor_the_next_form(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes
) -> None:
    add_nodes(t4_nodes(1, 1))
    with start_gpu_hub(OFFERS) as hub:
        hub.start("alice", CHOSEN)
        hub.until_ready("alice")
        hub.stop("alice")

        assert hub.start("alice", {"image": "evil", "memory": "1Gi"}).status_code == 400

        page = hub.person("alice").open("/hub/spawn")
        assert "evil" not in page.text
        assert page.chosen["memory"] == "2Gi"
        hub.start("alice")
        assert hub.until_ready("alice")["user_options"] == CHOSEN


@pytest.mark.skipif(
    jupyterhub.version_info[0] < 6, reason="version: JupyterHub 6 brought PUT and PATCH"
)
def test_what_is_stored_without_a_start_is_what_the_start_asks_for(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes
) -> None:
    add_nodes(t4_nodes(1, 1))
    with start_gpu_hub(OFFERS) as hub:
        hub.api("POST", "/users/alice")
        path = "/users/alice/servers/lab"
        first = {"display_name": "My lab", "user_options": {"memory": "2Gi", "image": "old"}}
        then = {"display_name": "Our lab", "user_options": {"memory": "2Gi", "image": "new"}}

        assert hub.api("PUT", path, first).status_code < 300
        assert hub.api("PATCH", path, then).status_code < 300
        assert hub.api("POST", path).status_code in {201, 202}

        (pod,) = wait_for(hub.pods.all)
        server = pod["spec"]["containers"][0]
        assert server["image"] == "new:1"
        assert server["resources"]["limits"]["memory"] == "2Gi"
