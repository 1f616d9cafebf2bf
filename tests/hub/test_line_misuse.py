"""Clumsy and greedy requests for places in line."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from localcluster import LocalCluster
from tests.hub.conftest import StartGPUHub
from tests.hub.lines import (
    NEXT,
    SECOND,
    WAITING,
    WAITS,
    WITH_A_LINE,
    a_shared_hub,
    told,
    wait_in_line,
)
from tests.hub.running import RunningHub
from tests.waiting import wait_for

START_SECONDS = 8
CONFIGURATION = f"""{WITH_A_LINE}
c.GPUSpawner.queue = {{"places": 2, "minutes_away": 1}}
c.KubeSpawner.start_timeout = {START_SECONDS}
c.JupyterHub.allow_named_servers = True
"""


@pytest.fixture(scope="module")
def shared(start_gpu_hub: StartGPUHub, running_cluster: LocalCluster) -> Iterator[RunningHub]:
    with a_shared_hub(start_gpu_hub, running_cluster, CONFIGURATION) as running:
        running.start_until_ready("alice")
        yield running


@pytest.fixture
def hub(shared: RunningHub) -> Iterator[RunningHub]:
    """A hub with one GPU, which Alice has; nobody waits."""
    yield shared
    for user in shared.api("GET", "/users").json():
        if user["servers"] and user["name"] != "alice":
            shared.stop(user["name"])


@pytest.mark.parametrize("wait", ["yes", "false", "here ", 0, 1, 1e300, [], {}, [True]])
def test_a_wish_that_is_neither_yes_nor_no_is_an_error_that_names_it(
    hub: RunningHub, wait: object
) -> None:
    answer = hub.start("bob", {**WAITING, "wait": wait})

    assert answer.status_code == 400
    assert "isn't one of true, false and" in answer.json()["message"].partition("wait: ")[2]
    assert not hub.server("bob")


@pytest.mark.parametrize("wait", [False, None])
def test_who_doesnt_want_to_wait_is_refused_as_without_a_line(
    hub: RunningHub, wait: object
) -> None:
    assert hub.start("bob", {**WAITING, "wait": wait}).status_code == 409
    assert not hub.server("bob")


def test_a_server_that_can_never_start_isnt_waited_for(hub: RunningHub) -> None:
    answer = hub.start("bob", {**WAITING, "gpus": 2})
    assert answer.status_code == 409
    assert "No machine here has 2 × Tesla T4" in answer.json()["message"]


def test_two_requests_at_once_take_one_place(hub: RunningHub) -> None:
    hub.api("POST", "/users/bob")
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: hub.start("bob", WAITING).status_code, range(8)))

    assert set(answers) <= {*WAITS, 400}
    wait_in_line(hub, "carol", SECOND)


def test_a_user_has_so_many_places_and_no_more(hub: RunningHub) -> None:
    wait_in_line(hub, "bob", NEXT)

    answer = hub.api("POST", "/users/bob/servers/second", WAITING)

    assert answer.status_code == 409
    assert answer.json()["message"] == (
        "You are already waiting in line for 1 server. Please leave that line first."
    )
    assert told(hub, "bob") == NEXT


def test_a_full_line_says_so_and_disturbs_nobody(hub: RunningHub) -> None:
    wait_in_line(hub, "bob", NEXT)
    wait_in_line(hub, "carol", SECOND)

    answer = hub.start("dave", WAITING)

    assert answer.status_code == 409
    assert "Too many people are waiting in line right now." in answer.json()["message"]
    assert "(line-full)" in hub.log
    assert told(hub, "carol") == SECOND


def test_a_wait_is_longer_than_a_start_may_take(hub: RunningHub) -> None:
    wait_in_line(hub, "bob", NEXT)
    began = datetime.fromisoformat(hub.server("bob")["started"])
    wait_for(lambda: (datetime.now(UTC) - began).total_seconds() > START_SECONDS + 2)
    assert told(hub, "bob") == NEXT


def test_who_left_and_starts_the_last_choice_again_isnt_put_in_line(hub: RunningHub) -> None:
    wait_in_line(hub, "bob", NEXT)
    hub.stop("bob")

    assert hub.start("bob").status_code == 409
    assert not hub.server("bob")


def test_a_stream_that_is_read_many_times_is_no_second_place(hub: RunningHub) -> None:
    wait_in_line(hub, "bob", NEXT)
    for _ in range(20):
        assert told(hub, "bob") == NEXT
    wait_in_line(hub, "carol", SECOND)
