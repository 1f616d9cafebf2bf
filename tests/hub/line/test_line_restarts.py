"""Places in line outlast the hub, if the server can still be started."""

import pytest

from tests.hub.lines import LIMITS, NEXT, SECOND, WAITING, a_hub_in_use, behind, told, wait_in_line
from tests.waiting import wait_for


@pytest.fixture
def hub(kept_hub, add_nodes):
    return a_hub_in_use(kept_hub, add_nodes)


def is_back(hub, user):
    return bool(hub.server(user).get("pending") == "spawn")


@pytest.mark.each_hub
@pytest.mark.parametrize("end", ["end", "kill"])
def test_places_outlast_the_hub(hub, end):
    wait_in_line(hub, "bob", NEXT)
    wait_in_line(hub, "carol", SECOND)

    getattr(hub, end)()
    hub.begin()

    hub.until_it_serves()
    wait_for(lambda: is_back(hub, "carol"))
    wait_for(lambda: is_back(hub, "bob"))
    assert told(hub, "bob") == NEXT
    assert told(hub, "carol") == SECOND
    hub.stop("alice")
    hub.until_ready("bob")
    assert "jupyter-carol" not in hub.pods.names()


def test_places_outlast_a_hub_that_is_killed_again_before_everybody_is_back(hub):
    people = [f"p{number:02}" for number in range(12)]
    for user in people:
        assert hub.start(user, WAITING).status_code == 202

    for _ in range(2):
        hub.kill()
        hub.begin()
        wait_for(lambda: any(hub.log.count(f"{user} waits in line") > 1 for user in people))

    hub.until_it_serves()
    wait_for(lambda: all(is_back(hub, user) for user in people))
    assert told(hub, people[-1]) == behind(11)


def test_a_hub_at_its_limit_takes_those_back_who_were_in_line(kept_hub, add_nodes):
    hub = a_hub_in_use(kept_hub, add_nodes, LIMITS)
    wait_in_line(hub, "bob", NEXT)
    wait_in_line(hub, "carol", SECOND)
    for user in ("erin", "frank"):
        hub.start_until_ready(user, {"accelerator": None})

    hub.kill()
    hub.begin()

    hub.until_it_serves()
    for user in ("bob", "carol"):
        wait_for(lambda: is_back(hub, user))  # noqa: B023, called at once
    assert told(hub, "carol") == SECOND


def test_whose_choice_is_gone_after_a_restart_keep_nobody_waiting_and_start_at_no_later_one(hub):
    wait_in_line(hub, "bob", NEXT)
    same = 'c.GPUSpawner.accelerators["other"] = c.GPUSpawner.accelerators'

    hub.reconfigure(f'{same}.pop("t4")')
    assert hub.start("carol", {**WAITING, "accelerator": "other"}).status_code == 202
    wait_for(lambda: "Not starting bob (invalid-options)" in hub.log)
    hub.stop("alice")
    hub.until_ready("carol")
    hub.stop("carol")

    hub.reconfigure('c.GPUSpawner.accelerators["t4"] = c.GPUSpawner.accelerators["other"]')
    hub.start_until_ready("alice")
    assert not hub.server("bob")


@pytest.mark.each_hub
def test_who_leaves_after_a_restart_starts_next_with_what_was_granted_last(hub):
    hub.start_until_ready("bob", {"accelerator": None})
    hub.stop("bob")
    wait_in_line(hub, "bob", NEXT)

    hub.kill()
    hub.begin()
    hub.until_it_serves()
    wait_for(lambda: is_back(hub, "bob"))
    assert told(hub, "bob") == NEXT
    hub.stop("bob")

    hub.start_until_ready("bob")
    assert hub.server("bob")["user_options"]["accelerator"] is None
