"""Options from users and scripts: read strictly, answered helpfully, kept on the form."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fixtures.cluster import AddNodes
from tests.hub.kept import LendHub
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


@pytest.fixture
def hub(kept_hub: LendHub, add_nodes: AddNodes) -> RunningHub:
    """A hub with one GPU."""
    add_nodes("single")
    return kept_hub(OFFERS)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"accelerator": "h100"}, "accelerator: 'h100' isn't offered"),
    ({"accelerator": "t4", "gpus": 3}, "gpus: 3 isn't offered with Tesla T4. Choose 1 or 2"),
    ({"accelerator": "t4", "gpus": {"a": {"b": 1}}}, "gpus: an object"),
    ({"accelerator": "t4", "gpus": 1e300}, "gpus: 1e+300"),
    ({"image": "<script>alert(1)</script>"}, "image: '<script>"),
    ({"gpu": 1}, "There is no option 'gpu'"),
    ({"accelerator": "t4", "image": "x" * 200_000}, "image: 'xxxx"),
    ({f"option-{number}": number for number in range(2_000)}, "'option-0'"),
]


def test_bad_options_by_rest_are_a_400_that_names_the_field(
    hub: RunningHub, subtests: pytest.Subtests
) -> None:
    for options, told in BAD:
        with subtests.test(told):
            answer = hub.start("alice", options)

            assert answer.status_code == 400, answer.text
            assert told.lower() in answer.json()["message"].lower()
    assert not hub.pods.all()


@pytest.mark.each_hub
def test_a_body_that_is_not_an_object_is_a_400_and_breaks_nothing_later(
    hub: RunningHub, subtests: pytest.Subtests
) -> None:
    bodies: list[object] = ["text", 7, [{"gpus": 1}]]
    for body in bodies:
        with subtests.test(repr(body)):
            answer = hub.start("mallory", body)

            assert answer.status_code == 400, answer.text
            assert answer.json()["message"]
            assert hub.person("mallory").open("/hub/spawn").status == 200
    assert not hub.pods.all()


BAD_FORMS = [
    ({"accelerator": "t4", "gpus--t4": "x"}, "gpus: 'x' isn't a number"),
    ({"accelerator": "", "image": "<b>huge</b>"}, "'<b>huge</b>' isn't offered"),
    ({"accelerator": "", "memory": "1" * 100_000}, "memory: '1111"),
]


def test_a_bad_form_is_shown_again_with_the_field_s_name(
    hub: RunningHub, subtests: pytest.Subtests
) -> None:
    alice = hub.person("alice")
    for form, told in BAD_FORMS:
        with subtests.test(told):
            page = alice.submit(form)

            assert page.status == 400
            assert told.lower() in page.text.lower()
            assert "<b>huge" not in page.html
    assert not hub.pods.all()


@pytest.mark.each_hub
def test_a_refused_form_keeps_the_choices(hub: RunningHub) -> None:
    hub.start("alice", {"accelerator": "t4"})
    bob = hub.person("bob")
    chosen = {"accelerator": "t4", "gpus--t4": "1", "image": "large", "memory": "2Gi", "cpu": "2"}

    for server in ["", "second"]:
        page = bob.submit(chosen, server=server)

        assert page.status == 409
        assert "in use" in page.text
        assert page.chosen == {**page.chosen, **chosen}
    assert hub.pods.names() == {"jupyter-alice"}


@pytest.mark.each_hub
def test_a_query_chooses_like_a_form(hub: RunningHub) -> None:
    alice, bob = hub.person("alice"), hub.person("bob")

    assert alice.open("/hub/spawn?opt-accelerator=t4&opt-gpus=1").is_of_a_start
    page = bob.open("/hub/spawn?opt-accelerator=t4&opt-image=large")

    assert page.status == 409
    assert "in use" in page.text
    assert page.chosen["image"] == "large"
    assert hub.server("alice")["user_options"]["gpus"] == 1


@pytest.mark.each_hub
@pytest.mark.parametrize("body", [{}, {"memory": "2Gi"}])
def test_options_missing_from_a_body_get_the_configured_defaults(
    hub: RunningHub, body: dict[str, Any]
) -> None:
    hub.start_until_ready("alice", {"image": "large", "cpu": 2})
    hub.stop("alice")

    server = hub.start_until_ready("alice", body)

    assert server["user_options"] == {**DEFAULTS, **body}


def test_the_first_start_without_options_gets_the_defaults(hub: RunningHub) -> None:
    server = hub.start_until_ready("new-here")

    assert server["user_options"] == DEFAULTS


def test_the_pod_has_the_chosen_options(hub: RunningHub) -> None:
    hub.start("alice", {"accelerator": "t4", "image": "large", "memory": "2Gi", "cpu": 2})

    server = hub.pods.bound("alice")["spec"]["containers"][0]

    amounts = {"nvidia.com/gpu": "1", "memory": "2Gi", "cpu": "2"}
    assert server["image"] == "large:1"
    assert server["resources"] == {"limits": amounts, "requests": amounts}
