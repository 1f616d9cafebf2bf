"""Every kind of start passes the gates, and every reservation is given back."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.fixtures.cluster import AddNodes
from tests.hub.configurations import ANSWER_AT_ONCE, T4, t4_nodes
from tests.hub.conftest import StartGPUHub
from tests.hub.kept import LendHub
from tests.hub.running import RunningHub
from tests.waiting import wait_for

ONE = {"accelerator": "t4"}
# What each hook does depends on the name of the user.
HOOKS = """
c.GPUSpawner.default_accelerator = ""
def before_the_spawn(spawner):
    if spawner.user.name == "unlucky":
        assert spawner.user_options["gpus"] == 1
        raise RuntimeError("the hook's own failure")
    spawner.team = "physics"
c.Spawner.pre_spawn_hook = before_the_spawn
c.Spawner.environment = {
    "TEAM": lambda spawner: spawner.team if spawner.user.name.endswith("team") else "none"}
def with_two_gpus(spawner, pod):
    resources = pod.spec.containers[0].resources
    for side in (resources.limits, resources.requests):
        if spawner.user.name == "gets-two" and "nvidia.com/gpu" in side:
            side["nvidia.com/gpu"] = "2"
    return pod
c.KubeSpawner.modify_pod_hook = with_two_gpus
"""


def test_refusals_by_form_and_rest_do_not_stop_the_hub_and_leave_no_pods(
    kept_hub: LendHub, add_nodes: AddNodes
) -> None:
    add_nodes(t4_nodes(1, 1))
    hub = kept_hub(T4)
    hub.start_until_ready("alice")
    bob = hub.person("bob")
    for _ in range(5):
        assert bob.submit({"accelerator": "t4"}).status == 409
        assert hub.start("carol").status_code == 409

    assert hub.lives
    assert "consecutive spawn" not in hub.log
    assert "Traceback" not in hub.log
    assert hub.pods.names() == {"jupyter-alice"}


def test_a_dozen_users_at_once_start_exactly_as_many_servers_as_gpus(
    kept_hub: LendHub, add_nodes: AddNodes
) -> None:
    add_nodes(t4_nodes(2, 1))
    hub = kept_hub(T4)
    people = [hub.person(f"form-{number}") for number in range(6)]

    with ThreadPoolExecutor(12) as at_once:
        forms = [at_once.submit(p.submit, {"accelerator": "t4"}, redirects=False) for p in people]
        calls = [at_once.submit(hub.start, f"rest-{number}") for number in range(6)]
    statuses = [f.result().status for f in forms] + [c.result().status_code for c in calls]

    # The hub answers a form with "302" after a second, whether its start is refused or not.
    assert set(statuses) <= {201, 202, 302, 409}
    wait_for(lambda: len(hub.pods.all()) == 2, timeout=60)
    assert all(pod["spec"].get("nodeName") for pod in hub.pods.all())
    wait_for(lambda: _nobody_is_pending(hub), timeout=60)
    assert len(hub.pods.all()) == 2


def forget(hub: RunningHub, stop: Callable[[], object]) -> str:
    """Let alice's pod be there again after her server has stopped; return its uid."""
    hub.start_until_ready("alice")
    pod = hub.pods.of("alice")
    stop()
    kept = {field: pod["metadata"][field] for field in ("name", "labels")}
    spec = {**pod["spec"], "nodeName": ""}
    hub.pods.cluster.api.create(hub.pods.path, {"metadata": kept, "spec": spec})
    return str(hub.pods.bound("alice")["metadata"]["uid"])


def test_a_forgotten_server_makes_way_for_its_owner_s_next(
    kept_hub: LendHub, add_nodes: AddNodes
) -> None:
    add_nodes(t4_nodes(1, 1))
    hub = kept_hub(T4)
    forgotten = forget(hub, lambda: hub.stop("alice"))

    assert wait_for(lambda: hub.start("bob").status_code == 409)
    hub.start_until_ready("alice")

    assert hub.pods.of("alice")["metadata"]["uid"] != forgotten


ENDLESS_LAG = """
from functools import partialmethod
from gpuspawner.preflight.preflight import Preflight
Preflight.__init__ = partialmethod(Preflight.__init__, lag=3600.0)
"""


@pytest.mark.each_hub
def test_nobody_waits_for_the_end_of_a_pod_that_kubespawner_has_to_delete(
    kept_hub: LendHub, add_nodes: AddNodes
) -> None:
    """It is still there when the view shows it, however late the view may be."""
    add_nodes(t4_nodes(1, 1))
    hub = kept_hub(T4 + ENDLESS_LAG)

    def stop_and_end() -> None:
        hub.stop("alice")
        hub.end()

    forgotten = forget(hub, stop_and_end)
    hub.begin()
    hub.until_it_serves()
    hub.until_it_sees_the_cluster()

    hub.start_until_ready("alice")

    assert hub.pods.of("alice")["metadata"]["uid"] != forgotten


def _nobody_is_pending(hub: RunningHub) -> bool:
    servers = [user["servers"] for user in hub.api("GET", "/users").json()]
    return not any(server["pending"] for each in servers for server in each.values())


def test_a_hook_that_fails_gives_the_reservation_back(
    kept_hub: LendHub, add_nodes: AddNodes
) -> None:
    add_nodes(t4_nodes(1, 1))
    hub = kept_hub(T4 + HOOKS)
    hub.expect_errors("hook's own failure", "POST /hub/api/users/unlucky/server", " {")

    assert hub.start("unlucky", ONE).status_code == 500

    assert hub.start("bob", ONE).status_code in {201, 202}
    assert hub.pods.bound("bob")


def test_a_pod_that_needs_the_hook_first_is_judged_after_it(
    kept_hub: LendHub, add_nodes: AddNodes
) -> None:
    add_nodes(t4_nodes(1, 1))
    hub = kept_hub(T4 + HOOKS)
    page = hub.person("in-a-team").open("/hub/spawn")
    assert page.status == 200
    assert "Unknown" in page.text

    hub.start_until_ready("in-a-team", ONE)
    hub.start("in-another-team", ONE)
    hub.events_end("in-another-team")
    assert hub.pods.names() == {"jupyter-in-a-team"}


@pytest.mark.each_hub
def test_a_form_that_is_sent_twice_starts_one_server(
    kept_hub: LendHub, add_nodes: AddNodes
) -> None:
    add_nodes(t4_nodes(1, 1))
    hub = kept_hub(T4)
    alice = hub.person("alice")
    alice.open("/hub/home")
    hub.expect_errors("Failed to spawn single-user server with form")

    def press(_: int) -> int:
        return alice.submit({"accelerator": "t4"}, redirects=False).status

    with ThreadPoolExecutor(8) as threads:
        assert sorted(threads.map(press, range(8))) == [302] + [400] * 7
    hub.until_ready("alice")


@pytest.mark.each_hub
def test_the_pod_that_is_really_sent_is_judged_and_options_refused_then_are_not_stored(
    kept_hub: LendHub, add_nodes: AddNodes
) -> None:
    add_nodes(t4_nodes(1, 1))
    hub = kept_hub(T4 + HOOKS)
    assert hub.start("gets-two", ONE).status_code in {202, 409}
    hub.events_end("gets-two")

    assert "Tesla T4" in hub.person("gets-two").open("/hub/spawn-pending/gets-two").text
    assert not hub.pods.all()
    assert hub.start_until_ready("gets-two")["user_options"]["accelerator"] is None


@pytest.mark.each_hub
def test_an_administrator_s_form_and_options_stay_theirs(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes
) -> None:
    add_nodes(t4_nodes(1, 1))
    form = """
c.Spawner.options_form = '<p>our own form</p>'
async def from_form(data):
    return {"accelerator": "t4", "gpus": 1, "course": data["course"][0]}
c.Spawner.options_from_form = from_form
def apply(spawner, options):
    spawner.environment = {"COURSE": options.get("course", "none")}
c.Spawner.apply_user_options = apply
"""
    with start_gpu_hub(T4 + form) as hub:
        alice, bob = hub.person("alice"), hub.person("bob")

        assert "our own form" in alice.open("/hub/spawn").text
        assert alice.submit({"course": "ml"}).is_of_a_start
        server = hub.pods.bound("alice")["spec"]["containers"][0]
        assert {"name": "COURSE", "value": "ml"} in server["env"]
        assert server["resources"]["limits"]["nvidia.com/gpu"] == "1"
        hub.until_ready("alice")
        page = bob.submit({"course": "ml"})
        assert page.status == 409
        assert "our own form" in page.text
        assert "in use" in page.text


def test_a_start_waits_for_a_new_node_and_says_how_long(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes
) -> None:
    pool = T4.replace('"counts"', '"scale_up": {"max_nodes": 1, "minutes": 8}, "counts"')
    with start_gpu_hub(pool + ANSWER_AT_ONCE) as hub:
        add_nodes("single")  # a node of another kind

        assert hub.start("alice").status_code in {201, 202}
        wait_for(hub.pods.all)
        with ThreadPoolExecutor(1) as meanwhile:
            events = meanwhile.submit(hub.events, "alice")
            assert not hub.pods.of("alice")["spec"].get("nodeName")
            add_nodes(t4_nodes(1, 1))
            hub.until_ready("alice")

        messages = [event["message"] for event in events.result() if "message" in event]
        assert "A new machine is starting for you; this usually takes" in messages[1]


def test_a_pod_is_judged_with_what_admission_adds(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes
) -> None:
    add_nodes(t4_nodes(1, 2))  # of 32Gi
    limits = {"limits": [{"type": "Container", "defaultRequest": {"memory": "20Gi"}}]}
    with start_gpu_hub(T4) as hub:  # the limits stay in its namespace
        path = f"/api/v1/namespaces/{hub.pods.namespace}/limitranges"
        hub.pods.cluster.api.create(path, {"metadata": {"name": "sizes"}, "spec": limits})
        hub.start_until_ready("alice")

        page = hub.person("bob").submit({"accelerator": "t4"})

        assert page.status == 409
        assert "20 GiB" in page.text
        assert hub.pods.names() == {"jupyter-alice"}
