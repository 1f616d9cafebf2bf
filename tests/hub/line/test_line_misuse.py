"""Clumsy and greedy requests for places in line."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from tests.hub.lines import (
    NEXT,
    SECOND,
    WAITING,
    WAITS,
    a_hub_without_room,
    told,
    wait_in_line,
)
from tests.waiting import wait_for

START_SECONDS = 3
"""How long a start of Hasty's may take."""
FEW_PLACES = f"""
c.GPUSpawner.queue = {{"places": 2, "minutes_away": 1}}
def hurry(spawner):
    if spawner.user.name == "hasty":
        spawner.start_timeout = {START_SECONDS}
c.KubeSpawner.pre_spawn_hook = hurry
c.JupyterHub.allow_named_servers = True
"""


@pytest.fixture
def hub(kept_hub, add_nodes, cluster):
    """A hub with one GPU, which somebody has; nobody waits."""
    return a_hub_without_room(kept_hub, add_nodes, cluster, FEW_PLACES)


def test_a_wish_that_is_neither_yes_nor_no_is_an_error_that_names_it(hub, subtests):
    wishes = ["yes", "false", "here ", 0, 1, 1e300, [], {}, [True]]
    for wait in wishes:
        with subtests.test(repr(wait)):
            answer = hub.start("bob", {**WAITING, "wait": wait})

            assert answer.status_code == 400
            allowed = 'isn\'t one of true, false, "anyway" and "here".'
            assert allowed in answer.json()["message"].partition("wait: ")[2]
            assert not hub.server("bob")


def test_two_requests_at_once_take_one_place(hub):
    hub.api("POST", "/users/bob")
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: hub.start("bob", WAITING).status_code, range(8)))

    assert set(answers) <= {*WAITS, 400}
    wait_in_line(hub, "carol", SECOND)


def test_a_full_line_says_so_and_disturbs_nobody(hub):
    wait_in_line(hub, "bob", NEXT)
    wait_in_line(hub, "carol", SECOND)

    answer = hub.start("dave", WAITING)

    assert answer.status_code == 409
    assert "Too many people are waiting in line right now." in answer.json()["message"]
    assert "(line-full)" in hub.log
    assert told(hub, "carol") == SECOND


def test_a_wait_is_longer_than_a_start_may_take(hub):
    wait_in_line(hub, "hasty", NEXT)
    began = datetime.fromisoformat(hub.server("hasty")["started"])
    wait_for(lambda: (datetime.now(UTC) - began).total_seconds() > START_SECONDS + 2)
    assert told(hub, "hasty") == NEXT


def test_who_left_and_starts_the_last_choice_again_isnt_put_in_line(hub):
    wait_in_line(hub, "bob", NEXT)
    hub.stop("bob")

    assert hub.start("bob").status_code == 409
    assert not hub.server("bob")


def test_a_stream_that_is_read_many_times_is_no_second_place(hub):
    wait_in_line(hub, "bob", NEXT)
    for _ in range(20):
        assert told(hub, "bob") == NEXT
    wait_in_line(hub, "carol", SECOND)
