"""A start without options uses those granted last, or stored without a start."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
import requests

from gpuspawner.compat.jupyterhub import COUNTS_REFUSALS
from tests.fixtures.cluster import AddNodes
from tests.hub.configurations import ANSWER_AT_ONCE, t4_nodes
from tests.hub.conftest import StartGPUHub
from tests.hub.kept import LendHub
from tests.hub.running import RunningHub
from tests.hub.versions import PUT_AND_PATCH
from tests.unit.makers.profile_lists import CPU
from tests.waiting import wait_for

pytestmark = pytest.mark.each_hub

OFFERS = """
c.JupyterHub.allow_named_servers = True
c.GPUSpawner.accelerators = {"t4": {"display_name": "Tesla T4", "node_selector": {"gpu": "t4"}}}
c.GPUSpawner.default_accelerator = ""
c.GPUSpawner.images = {"old": {"image": "old:1"}, "new": {"image": "new:1"}}
c.GPUSpawner.memory_choices = ["1Gi", "2Gi"]
"""
WITHOUT_OLD = 'c.GPUSpawner.images = {"new": {"image": "new:1"}}'
TOO_DEEP = {"image": json.loads("[" * 200 + "]" * 200)}
CHOSEN = {"accelerator": None, "gpus": 0, "image": "old", "memory": "2Gi", "cpu": None}
LAB = "/users/alice/servers/lab"


def make_lab(hub: RunningHub) -> None:
    """Make alice and one of her servers, with its own options, without starting it."""
    hub.api("POST", "/users/alice")
    body = {"display_name": "My lab", "user_options": {"memory": "2Gi", "image": "old"}}
    assert hub.api("PUT", LAB, body).status_code < 300


def store(hub: RunningHub, options: object) -> None:
    """Store other options for that server."""
    body = {"display_name": "Our lab", "user_options": options}
    assert hub.api("PATCH", LAB, body).status_code < 300


def image_and_memory_of_the_only_server(hub: RunningHub) -> tuple[str, str]:
    (pod,) = wait_for(hub.pods.all)
    server = pod["spec"]["containers"][0]
    return server["image"], server["resources"]["limits"]["memory"]


def test_a_stored_choice_that_is_gone_is_replaced_with_a_notice(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes
) -> None:
    add_nodes(t4_nodes(1, 1))
    with start_gpu_hub(OFFERS + ANSWER_AT_ONCE) as hub:
        hub.start_until_ready("alice", CHOSEN)
        hub.stop("alice")

        hub.reconfigure(WITHOUT_OLD)

        page = hub.person("alice").open("/hub/spawn")
        assert "Some of your last choices are no longer offered: Image 'old'." in page.text
        assert (page.chosen["image"], page.chosen["memory"]) == ("new", "2Gi")
        hub.start("alice")
        told = [event["message"] for event in hub.events("alice")]
        assert any("Image: new instead of 'old'." in text for text in told)
        assert hub.until_ready("alice")["user_options"] == {**CHOSEN, "image": "new"}

        hub.stop("alice")
        assert "no longer offered" not in hub.person("alice").open("/hub/spawn").text


def test_refused_options_affect_neither_the_next_start_nor_the_next_form(
    kept_hub: LendHub, add_nodes: AddNodes
) -> None:
    add_nodes(t4_nodes(1, 1))
    hub = kept_hub(OFFERS)
    hub.start_until_ready("alice", CHOSEN)
    hub.stop("alice")

    assert hub.start("alice", {"image": "evil", "memory": "1Gi"}).status_code == 400

    page = hub.person("alice").open("/hub/spawn")
    assert "evil" not in page.text
    assert page.chosen["memory"] == "2Gi"
    assert hub.start_until_ready("alice")["user_options"] == CHOSEN


@PUT_AND_PATCH
def test_a_refused_start_without_options_keeps_the_stored_options_for_the_next(
    kept_hub: LendHub, add_nodes: AddNodes
) -> None:
    add_nodes(t4_nodes(1, 1))
    hub = kept_hub(OFFERS + ANSWER_AT_ONCE)
    hub.start_until_ready("bob", {"accelerator": "t4"})
    stored = {"accelerator": "t4", "memory": "2Gi", "image": "new"}
    make_lab(hub)
    store(hub, stored)

    assert hub.api("POST", LAB).status_code == 409

    assert hub.api("GET", LAB).json()["user_options"] == stored
    hub.stop("bob")
    assert hub.api("POST", LAB).status_code in {201, 202}
    assert image_and_memory_of_the_only_server(hub) == ("new:1", "2Gi")


@PUT_AND_PATCH
def test_a_refused_start_restores_only_what_it_replaced(
    kept_hub: LendHub, add_nodes: AddNodes
) -> None:
    add_nodes(t4_nodes(1, 1))
    refused: list[object] = [{"image": "evil"}, {"image": "evil"}, TOO_DEEP]
    hub = kept_hub(OFFERS)
    make_lab(hub)
    for stored in ({"image": "new"}, {"image": "new", "memory": "2Gi"}):
        store(hub, stored)
        for body in refused:
            assert hub.api("POST", LAB, body).status_code == 400
            assert hub.api("GET", LAB).json()["user_options"] == stored

        hub.end()
        hub.begin()
        hub.until_it_serves()

        assert hub.api("GET", LAB).json()["user_options"] == stored
        assert hub.api("POST", LAB, {"image": "evil"}).status_code == 400
        assert hub.api("GET", LAB).json()["user_options"] == stored

    assert hub.api("POST", LAB).status_code in {201, 202}
    assert image_and_memory_of_the_only_server(hub) == ("new:1", "2Gi")


PROFILES = f"c.KubeSpawner.profile_list = {[CPU]!r}\n"
SMALL_AND_LARGE = """
c.KubeSpawner.profile_list = [
    {"display_name": "Small", "slug": "small"}, {"display_name": "Large", "slug": "large"}]
"""
APPLYING = 'c.Spawner.apply_user_options = {"image": "image"}\n'
NO_OPTIONS_IN_5 = [b"", b"null"]
NO_OPTIONS_IN_6 = [*NO_OPTIONS_IN_5, b"{}", b"[]", b'""', b"0", b"false", b'{"display_name": ""}']


@pytest.mark.parametrize(
    ("configuration", "chosen"),
    [(SMALL_AND_LARGE, {"profile": "large"}), (APPLYING, {"image": "lab:2", "course": "ml"})],
    ids=["profiles", "applied"],
)
def test_a_body_means_what_it_means_to_the_hub_if_the_options_are_the_administrators(
    kept_hub: LendHub, add_nodes: AddNodes, configuration: str, chosen: dict[str, object]
) -> None:
    add_nodes("single")
    hub = kept_hub(configuration)
    hub.api("POST", "/users/alice")

    def stored_after(body: bytes) -> object:
        hub.start("alice", chosen)
        hub.until_ready("alice")
        hub.stop("alice")
        assert hub.raw("POST", "/users/alice/server", body).status_code in {201, 202}, body
        options = hub.until_ready("alice")["user_options"]
        hub.stop("alice")
        return options

    same = NO_OPTIONS_IN_5 if COUNTS_REFUSALS else NO_OPTIONS_IN_6
    assert [stored_after(it) for it in same] == [chosen] * len(same)
    assert stored_after(b"{}" if COUNTS_REFUSALS else b'{"user_options": {}}') == {}


@pytest.mark.parametrize("configuration", [OFFERS, PROFILES], ids=["offers", "profiles"])
def test_too_large_options_stored_by_an_older_version_give_way_to_defaults(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes, configuration: str
) -> None:
    add_nodes("single")
    with start_gpu_hub(configuration + ANSWER_AT_ONCE) as hub:
        hub.start_until_ready("alice")
        hub.stop("alice")
        hub.change_database("UPDATE spawners SET user_options = ?", json.dumps(TOO_DEEP))

        assert hub.person("alice").open("/hub/spawn").status == 200
        server = hub.start_until_ready("alice")

        assert server["user_options"] != TOO_DEEP
        assert "Not using the options stored for alice:" in hub.log


def test_concurrent_requests_do_not_roll_back_a_start_s_options(
    kept_hub: LendHub, add_nodes: AddNodes
) -> None:
    add_nodes(t4_nodes(1, 1))
    hub = kept_hub(OFFERS)
    people = [f"person-{number}" for number in range(4)]
    over = Event()

    def look() -> None:
        # Reads no table, so that the hub's session stays as the start left it.
        while not over.is_set():
            assert requests.get(f"{hub.url}/hub/health", timeout=30).ok

    with ThreadPoolExecutor(6) as at_once:
        looking = [at_once.submit(look) for _ in range(2)]
        starts = [at_once.submit(hub.start, it, {"accelerator": "t4"}) for it in people]
        statuses = sorted(it.result().status_code for it in starts)
        over.set()

    assert statuses[1:] == [409, 409, 409]
    assert all(it.result() is None for it in looking)
    assert "Rolling back dirty objects" not in hub.log
