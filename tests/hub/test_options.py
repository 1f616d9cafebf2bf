"""What people and scripts send: read strictly, answered kindly, kept on the form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.fixtures.cluster import AddNodes
from tests.hub.conftest import StartGPUHub
from tests.hub.running import RunningHub

OFFERS = """
c.JupyterHub.allow_named_servers = True
c.GPUSpawner.accelerators = {"t4": {
    "display_name": "Tesla T4", "counts": [1, 2],
    "node_selector": {"kubernetes.io/hostname": "gpu-0"}}}
c.GPUSpawner.default_accelerator = ""
c.GPUSpawner.images = {
    "small": {"display_name": "Small", "image": "small:1"},
    "large": {"display_name": "Large", "image": "large:1"},
}
c.GPUSpawner.memory_choices = ["1Gi", "2Gi"]
c.GPUSpawner.cpu_choices = [1, 2]
"""
DEFAULTS = {"accelerator": None, "gpus": 0, "image": "small", "memory": "1Gi", "cpu": 1}


@pytest.fixture(scope="module")
def hub(start_gpu_hub: StartGPUHub) -> Iterator[RunningHub]:
    with start_gpu_hub(OFFERS) as running:
        yield running


@pytest.fixture(autouse=True)
def one_gpu(add_nodes: AddNodes, leave_no_server: None) -> None:
    # Servers are gone before their node: fixtures end in the reverse order.
    del leave_no_server
    add_nodes("single")


BAD: list[tuple[dict[str, Any], str]] = [
    ({"accelerator": "h100"}, "accelerator: 'h100' is not on offer"),
    ({"accelerator": ["t4"]}, "accelerator: a list is not text"),
    ({"accelerator": "t4", "gpus": 3}, "gpus: 3 is not on offer with Tesla T4; choose 1 or 2"),
    ({"accelerator": "t4", "gpus": "2"}, "gpus: '2' is not a number; choose 1 or 2"),
    ({"accelerator": "t4", "gpus": -1}, "gpus: -1"),
    ({"accelerator": "t4", "gpus": True}, "gpus: true"),
    ({"accelerator": "t4", "gpus": {"a": {"b": 1}}}, "gpus: an object"),
    ({"accelerator": "t4", "gpus": 1e300}, "gpus: 1e+300"),
    ({"image": "<script>alert(1)</script>"}, "image: '<script>"),
    ({"image": 7}, "image: 7 is not text; choose small or large"),
    ({"memory": "64Gi"}, "memory: '64Gi' is not on offer"),
    ({"memory": "1Gi; rm -rf /"}, "memory: '1Gi; rm -rf /'"),
    ({"cpu": 64}, "cpu: 64 is not on offer"),
    ({"gpu": 1}, "there is no option 'gpu'"),
    ({"accelerator": "t4", "image": "x" * 200_000}, "image: 'xxxx"),
    ({f"option-{number}": number for number in range(2_000)}, "'option-0'"),
]


@pytest.mark.parametrize(("options", "told"), BAD, ids=[told[:30] for _, told in BAD])
def test_bad_options_by_rest_are_a_400_that_names_the_field(
    hub: RunningHub, options: dict[str, Any], told: str
) -> None:
    answer = hub.start("alice", options)

    assert answer.status_code == 400, answer.text
    assert told.lower() in answer.json()["message"].lower()
    assert not hub.pods.all()


@pytest.mark.parametrize("body", ["text", 7, [1, 2], [{"gpus": 1}], True])
def test_a_body_that_is_no_object_is_a_400_and_breaks_nothing_later(
    hub: RunningHub, body: object
) -> None:
    answer = hub.start("mallory", body)

    assert answer.status_code == 400, answer.text
    assert answer.json()["message"]
    assert hub.person("mallory").open("/hub/spawn").status == 200
    assert not hub.pods.all()


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"accelerator": "h100"}, "'h100' is not on offer"),
        ({"accelerator": "t4", "gpus--t4": "3"}, "3 is not on offer with Tesla T4; choose 1 or 2"),
        ({"accelerator": "t4", "gpus--t4": "x"}, "gpus: 'x' is not a number"),
        ({"accelerator": "", "image": "<b>huge</b>"}, "'<b>huge</b>' is not on offer"),
        ({"accelerator": "", "memory": "1" * 100_000}, "memory: '1111"),
    ],
)
def test_a_bad_form_is_shown_again_with_the_field_s_name(
    hub: RunningHub, form: dict[str, str], told: str
) -> None:
    page = hub.person("alice").submit(form)

    assert page.status == 400
    assert told.lower() in page.text.lower()
    assert "<b>huge" not in page.html
    assert not hub.pods.all()


def test_a_refused_form_keeps_what_was_chosen(hub: RunningHub) -> None:
    hub.start("alice", {"accelerator": "t4"})
    bob = hub.person("bob")
    chosen = {"accelerator": "t4", "gpus--t4": "1", "image": "large", "memory": "2Gi", "cpu": "2"}

    for server in ["", "second"]:
        page = bob.submit(chosen, server=server)

        assert page.status == 409
        assert "in use" in page.text
        assert page.chosen == {**page.chosen, **chosen}
    assert hub.pods.names() == {"jupyter-alice"}


def test_a_query_chooses_as_the_form_does(hub: RunningHub) -> None:
    alice, bob = hub.person("alice"), hub.person("bob")

    assert alice.open("/hub/spawn?opt-accelerator=t4&opt-gpus=1").is_of_a_start
    page = bob.open("/hub/spawn?opt-accelerator=t4&opt-image=large")

    assert page.status == 409
    assert "in use" in page.text
    assert page.chosen["image"] == "large"
    assert hub.server("alice")["user_options"]["gpus"] == 1


def test_nothing_said_means_the_last_choice_granted(hub: RunningHub) -> None:
    chosen = {"accelerator": None, "gpus": 0, "image": "large", "memory": "2Gi", "cpu": 2}
    hub.start("alice", chosen)
    hub.until_ready("alice")
    hub.stop("alice")
    assert hub.start("alice", {"image": "none such"}).status_code == 400

    hub.start("alice")

    assert hub.until_ready("alice")["user_options"] == chosen
    assert hub.pods.bound("alice")["spec"]["containers"][0]["image"] == "large:1"


@pytest.mark.parametrize("body", [{}, {"memory": "2Gi"}])
def test_what_a_body_leaves_out_is_the_configured_default(
    hub: RunningHub, body: dict[str, Any]
) -> None:
    hub.start("alice", {"image": "large", "cpu": 2})
    hub.until_ready("alice")
    hub.stop("alice")

    hub.start("alice", body)

    assert hub.until_ready("alice")["user_options"] == {**DEFAULTS, **body}


def test_the_first_start_of_all_without_a_word_gets_the_defaults(hub: RunningHub) -> None:
    hub.start("new-here")

    assert hub.until_ready("new-here")["user_options"] == DEFAULTS


def test_what_was_chosen_is_in_the_pod(hub: RunningHub) -> None:
    hub.start("alice", {"accelerator": "t4", "image": "large", "memory": "2Gi", "cpu": 2})

    server = hub.pods.bound("alice")["spec"]["containers"][0]

    amounts = {"nvidia.com/gpu": "1", "memory": "2Gi", "cpu": "2"}
    assert server["image"] == "large:1"
    assert server["resources"] == {"limits": amounts, "requests": amounts}
