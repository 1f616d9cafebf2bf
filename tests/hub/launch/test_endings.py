"""Servers that were up and end: what their owners read, on the hub's pages and on the next form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from localcluster import Fleet, LocalCluster, NodeGroup
from localcluster.losses import find_again, lose
from tests.fixtures.cluster import AddNodes
from tests.hub.configurations import ANSWER_AT_ONCE, T4
from tests.hub.kept import LendHub
from tests.hub.running import RunningHub
from tests.waiting import wait_for

AMOUNTS = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "1"}
NODES = Fleet((NodeGroup("t4", 2, AMOUNTS, {"gpu": "t4"}),))
ONE_T4 = {"accelerator": "t4", "gpus": 1}

# Each user's pods have their own fate. A limit of 1 stops the hub at its first own failure.
CONFIGURATION = f"""
{ANSWER_AT_ONCE}{T4}
c.JupyterHub.cleanup_servers = False
c.KubeSpawner.poll_interval = 2
c.KubeSpawner.http_timeout = 15
c.Spawner.consecutive_failure_limit = 1
c.GPUSpawner.memory_choices = ["2Gi"]
FATES = {{
    "oom": {{"exits-after": "forever", "exit-reason": "OOMKilled", "exit-code": "137"}},
    "again": {{
        "exits-after": "forever", "exit-times": "1", "exit-reason": "OOMKilled",
        "exit-code": "137"}},
    "crash": {{
        "exits-after": "forever", "exit-code": "3", "exit-output": "ImportError: <b>torch</b>"}},
    "done": {{"exits-after": "forever", "exit-code": "0"}},
    "slow": {{"pull-seconds": "forever"}},
    "pressed": {{"uses": "3Gi"}},
}}
def fate(spawner):
    name = spawner.user.name
    annotations = {{f"localcluster/{{key}}": it for key, it in FATES.get(name, {{}}).items()}}
    spawner.extra_annotations = annotations
    spawner.extra_pod_config = {{"terminationGracePeriodSeconds": 1}}
    if name in ("oom", "crash"):
        spawner.extra_pod_config["restartPolicy"] = "Never"
    if name == "again":  # KubeSpawner ends a server if it looks between its two containers
        spawner.poll_interval = 3600
    if name == "brief":
        spawner.extra_pod_config["activeDeadlineSeconds"] = 15
    spawner.tolerations = [
        {{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
          "tolerationSeconds": 1}}]
c.KubeSpawner.pre_spawn_hook = fate
"""

START_AGAIN = "Please start your server again; it may get another machine."
DELETED = (
    "{server} ended because something other than the hub deleted it. Please start it again, and "
    "tell your administrator if it ends again."
)


@pytest.fixture
def hub(kept_hub: LendHub, add_nodes: AddNodes) -> RunningHub:
    """A hub with two nodes, for each test new ones."""
    add_nodes(NODES)
    return kept_hub(CONFIGURATION)


def node_of(hub: RunningHub, user: str) -> str:
    return str(hub.pods.of(user)["spec"]["nodeName"])


def restarts(hub: RunningHub, user: str) -> int:
    [container] = hub.pods.of(user)["status"]["containerStatuses"]
    return int(container["restartCount"]) if container["ready"] else 0


def end(hub: RunningHub, user: str) -> None:
    """Let a server's process end; its pod's annotations say how."""
    hub.person(user).session.get(f"{hub.url}/user/{user}/end")


def until_ended(hub: RunningHub, user: str) -> None:
    wait_for(lambda: not hub.server(user))


def tells(hub: RunningHub, user: str, sentence: str) -> None:
    """Check that the hub's pages and the form say how the server ended, and not that it failed."""
    person = hub.person(user)
    for path in ("/hub/home", f"/hub/user/{user}/lab"):
        page = person.open(path)
        assert sentence.format(server="Your default server") in page.text
        assert "failed" not in page.text
    form = person.open("/hub/spawn").text
    assert form.count(sentence.format(server="Your last server")) == 1
    assert "Your default server" not in form
    assert hub.lives


def evict(hub: RunningHub, user: str) -> None:
    name = f"jupyter-{user}"
    hub.pods.cluster.api.create(
        f"{hub.pods.path}/{name}/eviction",
        {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}},
    )


def annotate(hub: RunningHub, node: str, **annotations: str) -> None:
    changed = {f"localcluster/{key.replace('_', '-')}": it for key, it in annotations.items()}
    hub.pods.cluster.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"annotations": changed}})


@pytest.mark.each_hub
def test_a_server_that_is_evicted_is_told_so_and_its_choice_starts_again(hub: RunningHub) -> None:
    hub.start_until_ready("ann", ONE_T4)
    evict(hub, "ann")
    until_ended(hub, "ann")

    sentence = "{server} ended because the cluster needed its place, or its machine."
    tells(hub, "ann", f"{sentence} {START_AGAIN}")
    ann = hub.person("ann")
    assert ann.open("/hub/spawn").chosen["accelerator"] == "t4"
    assert ann.submit(ann.open("/hub/spawn").chosen).is_of_a_start
    hub.until_ready("ann")
    assert "ended" not in ann.open("/hub/home").text


def test_a_server_whose_node_is_lost_ends_although_its_pod_stays(hub: RunningHub) -> None:
    hub.start_until_ready("ben", ONE_T4)
    lost = node_of(hub, "ben")
    lose(hub.pods.cluster.api, lost)

    wait_for(lambda: "doesn't answer any more" in hub.person("ben").open("/hub/home").text)
    until_ended(hub, "ben")

    tells(hub, "ben", f"{{server}} ended because its machine was lost. {START_AGAIN}")
    assert "jupyter-ben" in hub.pods.names()
    hub.start_until_ready("ben")
    assert node_of(hub, "ben") != lost
    find_again(hub.pods.cluster.api, lost)


def test_a_server_whose_node_is_drained_is_told_so(hub: RunningHub) -> None:
    hub.start_until_ready("cleo", ONE_T4)
    taint = {"key": "example.org/repair", "effect": "NoExecute"}
    path = f"/api/v1/nodes/{node_of(hub, 'cleo')}"
    hub.pods.cluster.api.patch(path, {"spec": {"taints": [taint]}})
    until_ended(hub, "cleo")

    sentence = "{server} ended because its machine was taken out of service."
    tells(hub, "cleo", f"{sentence} {START_AGAIN}")


@pytest.fixture
def urgent(running_cluster: LocalCluster) -> Iterator[str]:
    """The name of a priority class above the servers'."""
    classes, name = "/apis/scheduling.k8s.io/v1/priorityclasses", "urgent-endings"
    running_cluster.api.create(classes, {"metadata": {"name": name}, "value": 1000})
    yield name
    running_cluster.api.delete(f"{classes}/{name}")


def test_a_server_that_makes_room_for_a_higher_priority_is_told_so(
    hub: RunningHub, urgent: str
) -> None:
    hub.start_until_ready("dan", ONE_T4)
    spec: dict[str, Any] = {
        "priorityClassName": urgent,
        "nodeSelector": {"kubernetes.io/hostname": node_of(hub, "dan")},
        "containers": [
            {"name": "x", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
        ],
    }
    hub.pods.cluster.api.create(hub.pods.path, {"metadata": {"name": "urgent"}, "spec": spec})
    until_ended(hub, "dan")
    hub.pods.cluster.api.delete(f"{hub.pods.path}/urgent", grace=0)

    sentence = "{server} ended because it had to make room for one with a higher priority."
    tells(hub, "dan", f"{sentence} {START_AGAIN}")


def test_a_server_whose_node_runs_short_of_memory_is_told_so(hub: RunningHub) -> None:
    hub.start_until_ready("pressed", ONE_T4)
    annotate(hub, node_of(hub, "pressed"), low_memory="60Mi")
    until_ended(hub, "pressed")

    sentence = "{server} ended because its machine ran short of memory or disk space."
    tells(hub, "pressed", f"{sentence} {START_AGAIN}")


def test_a_server_that_takes_too_much_memory_is_told_its_limit(hub: RunningHub) -> None:
    hub.start_until_ready("oom", ONE_T4)
    end(hub, "oom")
    until_ended(hub, "oom")

    sentence = "{server} ended because it took more than its 2 GiB of memory."
    tells(hub, "oom", f"{sentence} Please choose more memory, or ask your administrator.")


def test_a_server_that_the_kubelet_restarts_is_up_and_is_told_why(hub: RunningHub) -> None:
    hub.start_until_ready("again", ONE_T4)
    end(hub, "again")
    wait_for(lambda: restarts(hub, "again"))

    sentence = (
        "Your default server was restarted because it took more than its 2 GiB of memory. Please "
        "choose more memory, or ask your administrator."
    )
    wait_for(lambda: sentence in hub.person("again").open("/hub/home").text)


def test_a_crash_is_told_with_its_last_words_as_text(hub: RunningHub) -> None:
    hub.start_until_ready("crash", ONE_T4)
    end(hub, "crash")
    until_ended(hub, "crash")

    sentence = "{server} crashed. The last line of its log: “ImportError: <b>torch</b>”."
    tells(hub, "crash", sentence)


def test_a_server_that_has_reached_its_lifetime_is_told_so_without_policies(
    hub: RunningHub,
) -> None:
    hub.start_until_ready("brief", ONE_T4)
    until_ended(hub, "brief")

    tells(
        hub,
        "brief",
        "{server} ended after less than a minute, the longest that it is allowed to run.",
    )


def test_whoever_ends_a_server_is_told_nothing(hub: RunningHub) -> None:
    hub.start_until_ready("fay", ONE_T4)
    hub.stop("fay")
    hub.start_until_ready("done", ONE_T4)
    end(hub, "done")
    until_ended(hub, "done")

    for user in ("fay", "done"):
        for path in ("/hub/home", "/hub/spawn"):
            assert "ended" not in hub.person(user).open(path).text


def test_a_broken_gpu_is_told_while_the_server_is_up(hub: RunningHub) -> None:
    hub.start_until_ready("gus", ONE_T4)
    annotate(hub, node_of(hub, "gus"), unhealthy_devices='{"nvidia.com/gpu": 1}')

    sentence = "Your default server is on a machine with a broken GPU."
    wait_for(lambda: sentence in hub.person("gus").open("/hub/home").text)


def test_an_ending_survives_the_hub_and_one_that_it_missed_is_told_as_such(
    hub: RunningHub,
) -> None:
    for user in ("ike", "joe"):
        hub.start_until_ready(user, ONE_T4)
    evict(hub, "ike")
    until_ended(hub, "ike")
    hub.kill()
    hub.pods.delete("joe")
    hub.begin()
    hub.until_it_serves()
    until_ended(hub, "joe")

    tells(hub, "ike", "{server} ended because the cluster needed its place, or its machine.")
    tells(hub, "joe", DELETED)


@pytest.mark.each_hub
def test_a_start_that_a_restart_of_the_hub_cuts_is_told_so_and_starts_once(
    hub: RunningHub,
) -> None:
    hub.expect_errors("slow does not appear to be running")
    hub.start("slow", ONE_T4)
    cut = hub.pods.bound("slow")["metadata"]["uid"]
    hub.kill()
    hub.begin()
    hub.until_it_serves()
    until_ended(hub, "slow")
    wait_for(lambda: "jupyter-slow" not in hub.pods.names())

    sentence = "{server} didn't start, because the hub was restarted meanwhile."
    tells(hub, "slow", f"{sentence} Please start it again.")
    hub.until_it_sees_the_cluster()
    slow = hub.person("slow")
    assert slow.submit(slow.open("/hub/spawn").chosen).is_of_a_start
    assert hub.pods.bound("slow")["metadata"]["uid"] != cut
    assert hub.pods.names() == {"jupyter-slow"}
