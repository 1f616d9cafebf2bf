"""People wait in line in a real hub."""

import pytest
import requests

from tests.hub.configurations import ANSWER_AT_ONCE, T4, t4_nodes
from tests.hub.lines import (
    LIMITS,
    NEXT,
    SECOND,
    WAITING,
    WITH_A_LINE,
    a_hub_in_use,
    told,
    wait_in_line,
)
from tests.hub.policies.test_policy_attempts_by_rest import own_token
from tests.waiting import wait_for


@pytest.fixture
def hub(kept_hub, add_nodes):
    return a_hub_in_use(kept_hub, add_nodes)


@pytest.mark.each_hub
def test_who_waits_is_told_the_place_and_starts_when_a_gpu_is_free(hub):
    wait_in_line(hub, "bob", NEXT)
    wait_in_line(hub, "carol", SECOND)
    assert hub.pods.names() == {"jupyter-alice"}

    hub.stop("alice")
    hub.until_ready("bob")
    assert hub.pods.names() == {"jupyter-bob"}
    hub.stop("bob")
    hub.until_ready("carol")


def test_nobody_who_comes_later_gets_what_somebody_waits_for(hub):
    wait_in_line(hub, "bob", NEXT)

    answer = hub.start("dave", {"accelerator": "t4"})

    assert answer.status_code == 409
    assert hub.pods.names() == {"jupyter-alice"}


def test_who_cancels_the_start_leaves_the_line(hub):
    wait_in_line(hub, "bob", NEXT)
    wait_in_line(hub, "carol", SECOND)

    hub.stop("bob")

    hub.stop("alice")
    hub.until_ready("carol")
    assert hub.pods.names() == {"jupyter-carol"}


def test_the_hub_ends_although_people_wait(start_gpu_hub, add_nodes):
    add_nodes(t4_nodes(1, 1))
    with start_gpu_hub(WITH_A_LINE) as hub:
        hub.start_until_ready("alice")
        wait_in_line(hub, "bob", NEXT)

        hub.process.terminate()

        wait_for(lambda: not hub.lives)


@pytest.mark.each_hub
def test_people_in_line_dont_use_up_the_hub_s_limits(kept_hub, add_nodes):
    hub = a_hub_in_use(kept_hub, add_nodes, LIMITS)
    for user in ("bob", "carol", "dave"):
        assert hub.start(user, WAITING).status_code == 202

    hub.start_until_ready("erin", {"accelerator": None})
    hub.start_until_ready("frank", {"accelerator": None})
    assert hub.start("grace", {"accelerator": None}).status_code == 429


def test_without_a_line_there_is_no_such_option(kept_hub, add_nodes):
    add_nodes(t4_nodes(1, 1))
    answer = kept_hub(T4 + ANSWER_AT_ONCE).start("bob", WAITING)

    assert answer.status_code == 400
    assert "wait" in answer.json()["message"]


KEPT = (
    "You are next in line. You are waiting for 1 × Tesla T4. "
    "Your place in line is kept until the limit allows your server."
)
ONE_GPU_FOR_ALL = """
c.GPUSpawner.policies = {"course": {"groups": ["course"], "gpus_per_group": 1}}
c.JupyterHub.load_groups = {"course": {"users": ["ann", "ben"]}}
"""


@pytest.fixture
def course(kept_hub, add_nodes):
    """A hub with two GPUs, on which Ann has the only one that her course may have."""
    add_nodes(t4_nodes(2, 1))
    hub = kept_hub(WITH_A_LINE + ONE_GPU_FOR_ALL)
    hub.start_until_ready("ann")
    return hub


def test_a_form_offers_to_wait_for_a_limit_that_others_use_up(course):
    ben = course.person("ben")
    refused = ben.submit({"accelerator": "t4"})
    assert refused.status == 409
    [waits] = refused.buttons("wait")
    assert "You would be the first in line." in refused.text

    # Without a script, something else may be chosen by then.
    assert ben.submit({"accelerator": "", "wait": waits}, redirects=False).status == 302
    assert KEPT in told(course, "ben")
    course.start_until_ready("carol")  # others go ahead

    course.stop("ann")
    course.until_ready("ben")


def test_who_loses_the_room_to_another_hub_is_back_at_the_old_place(
    kept_hub, start_gpu_hub, add_nodes
):
    add_nodes(t4_nodes(1, 1))
    one = kept_hub(WITH_A_LINE)
    with start_gpu_hub(WITH_A_LINE) as other:
        one.start_until_ready("alice")
        wait_in_line(one, "bob", NEXT)
        wait_in_line(other, "carol", NEXT)

        one.stop("alice")

        ready = {one: "bob", other: "carol"}
        first = wait_for(
            lambda: next((it for it in ready if it.server(ready[it]).get("ready")), None)
        )
        second = other if first is one else one
        first.stop(ready[first])
        wait_for(lambda: second.server(ready[second]))  # the start that lost the room ends first
        second.until_ready(ready[second])


RIVAL = """
async def take_the_room(spawner):
    if spawner.user.name == "bob" and not taken:
        taken.append(True)
        await spawner.api.create_namespaced_pod(spawner.namespace, {
            "metadata": {"name": "rival"},
            "spec": {"nodeName": "t4-0", "containers": [{"name": "it", "image": "it",
                "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}})

taken = []
c.KubeSpawner.pre_spawn_hook = take_the_room
"""


def test_who_loses_the_room_to_another_program_is_back_at_the_old_place(start_gpu_hub, add_nodes):
    add_nodes(t4_nodes(1, 1))
    with start_gpu_hub(WITH_A_LINE + RIVAL) as hub:
        hub.start_until_ready("alice")
        wait_in_line(hub, "bob", NEXT)
        wait_in_line(hub, "carol", SECOND)

        hub.stop("alice")
        wait_for(lambda: "rival" in hub.pods.names())
        wait_for(lambda: "You are back at your place in line" in hub.log)
        wait_for(lambda: hub.server("bob").get("pending") == "spawn")
        assert told(hub, "bob") == NEXT
        assert told(hub, "carol") == SECOND

        hub.pods.cluster.api.delete(f"{hub.pods.path}/rival", grace=0)
        hub.until_ready("bob")


def test_only_people_of_the_named_policies_may_wait(start_gpu_hub, add_nodes):
    configuration = """
c.GPUSpawner.policies = {"thesis": {"groups": ["thesis"], "gpus_per_user": 1}}
c.GPUSpawner.queue = {"policies": ["thesis"]}
c.JupyterHub.load_groups = {"thesis": {"users": ["bob"]}}
"""
    add_nodes(t4_nodes(1, 1))
    with start_gpu_hub(T4 + ANSWER_AT_ONCE + configuration) as hub:
        hub.start_until_ready("alice")

        assert hub.start("bob", WAITING).status_code == 202
        assert hub.start("carol", WAITING).status_code == 409


def test_people_in_line_read_how_many_servers_are_idle(hub):
    hub.change_database("UPDATE spawners SET last_activity = datetime('now', '-31 minutes')")

    wait_in_line(
        hub,
        "bob",
        f"{NEXT} 1 server with what you're waiting for hasn't been used for a while.",
    )


def test_everybody_may_read_how_many_wait_but_not_who(hub):
    wait_in_line(hub, "bob", NEXT)

    answer = requests.get(f"{hub.url}/hub/gpuspawner/line", **own_token(hub, "eve"), timeout=10)

    assert answer.json() == {"servers": 1, "accelerators": {"t4": 1}}


def test_the_decision_says_the_same_of_a_start_that_would_wait(hub):
    hub.api("POST", "/users/bob")
    token = own_token(hub, "bob")

    def ask(options):
        url = f"{hub.url}/hub/gpuspawner/decision/bob/"
        return requests.post(url, json=options, **token, timeout=10).json()

    assert ask(WAITING) == ask({"accelerator": "t4"})
    assert ask({"wait": 1})["reason"] == "invalid-options"
