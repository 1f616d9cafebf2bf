"""Starts that go wrong after the click: what their owners read, and what is left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from localcluster import Fleet, NodeGroup, Taint
from localcluster.losses import lose
from tests.fixtures.cluster import AddNodes
from tests.hub.configurations import ANSWER_AT_ONCE
from tests.hub.conftest import StartGPUHub
from tests.hub.kept import LendHub
from tests.hub.running import RunningHub
from tests.waiting import wait_for

ROOM = {"cpu": "32", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "32"}
TAINT = Taint("nvidia.com/gpu", "present", "NoSchedule")
# A node pulls one image after the other.
NODES = Fleet(
    tuple(NodeGroup(gpu, 1, ROOM, {"gpu": gpu}, (TAINT,)) for gpu in ("t4", "of-slow-images"))
)
# A failure that the hub counts would end it.
COUNTED = "c.KubeSpawner.consecutive_failure_limit = 1\n"
# Only these starts wait until their time is over; the others end as soon as their fault shows.
SHORT_LIMITS: dict[str, dict[str, int]] = {
    "slow-image": {"preparing_timeout": 3},
    "silent": {"http_timeout": 3},
    **{it: {"preparing_timeout": 15} for it in ("unreachable-registry", "full-disk", "volume")},
}


@dataclass(frozen=True)
class Failing:
    """A start that goes wrong.

    Attributes:
        faults: What the local cluster plays, by annotations without their prefix.
        sentence: What the server's owner reads.
    """

    faults: dict[str, str]
    sentence: str


# What ends at once must not listen for a moment: the hub would take it for a server.
ENDS = {"hangs": "true", "exits-after": "0"}
NO_PROGRAM = 'exec: "jupyterhub-singleuser": executable file not found in $PATH'
FAULTS = {
    "missing-image": Failing(
        {"pull-error": "not-found"},
        "There is no image “registry.example.org/missing-image:1”. "
        "Please choose another image, or ask your administrator.",
    ),
    "forbidden-image": Failing(
        {"pull-error": "unauthorized"},
        "The image “registry.example.org/forbidden-image:1” doesn't exist, or the cluster "
        "isn't allowed to download it. Please choose another image, or ask your administrator.",
    ),
    "unreachable-registry": Failing(
        {"pull-error": "unreachable"},
        "The registry of the image “registry.example.org/unreachable-registry:1” can't be reached. "
        "Please try again later, or tell your administrator.",
    ),
    "full-disk": Failing(
        {"pull-error": "no-space"},
        "The machine's disk is full. Please start your server again; it may get another machine.",
    ),
    "slow-image": Failing(
        {"pull-seconds": "forever"},
        "Your files or your server's software didn't arrive in time. "
        "Please try again later, or tell your administrator.",
    ),
    "volume": Failing(
        {"mount-error": "mount.nfs: No route to host"},
        "Your files can't be connected to the machine yet. "
        "Please try again later, or tell your administrator.",
    ),
    "taken-device": Failing(
        {"device-error": "unavailable"},
        "The GPU was taken just before your server got it. "
        "Please start your server again; it may get another machine.",
    ),
    "broken-device": Failing(
        {"device-error": "unhealthy"},
        "The machine can't give your server its GPU: the GPU or its driver is broken. "
        "Please start your server again; it may get another machine.",
    ),
    "shares": Failing(
        {"device-error": "shared"},
        "The machine gives a server one share of a GPU, and yours asks for more. "
        "Please choose something else, or ask your administrator.",
    ),
    "no-program": Failing(
        {"run-error": NO_PROGRAM},
        "The image lacks the program that starts your server. "
        "Please choose another image, or ask your administrator.",
    ),
    "crash": Failing(
        {**ENDS, "exit-output": "ImportError: no module named torch"},
        "Your server crashed while it was starting. "
        "The last line of its log: “ImportError: no module named torch”. "
        "Please try again later, or tell your administrator.",
    ),
    "memory": Failing(
        {**ENDS, "exit-reason": "OOMKilled", "exit-code": "137"},
        "Your server ran out of memory while it was starting. Please choose more memory, or "
        "ask your administrator.",
    ),
    "done": Failing(
        {**ENDS, "exit-code": "0"},
        "Your server ended by itself while it was starting. "
        "Please try again later, or tell your administrator.",
    ),
    "silent": Failing(
        {"hangs": "true"},
        "Your server is running but doesn't answer. Please try again later, or tell your "
        "administrator.",
    ),
}


def profile(slug: str, faults: dict[str, str]) -> dict[str, Any]:
    gpu = {
        "extra_resource_limits": {"nvidia.com/gpu": "1"},
        "node_selector": {"gpu": "of-slow-images" if slug == "slow-image" else "t4"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "extra_annotations": {f"localcluster/{key}": text for key, text in faults.items()},
        "image": f"registry.example.org/{slug}:1",
        **SHORT_LIMITS.get(slug, {}),
    }
    if slug == "volume":
        gpu["volumes"] = [{"name": "home", "emptyDir": {}}]
    return {"slug": slug, "display_name": slug, "kubespawner_override": gpu}


PROFILES = [profile(slug, it.faults) for slug, it in FAULTS.items()]
CONFIGURATION = f"{ANSWER_AT_ONCE}{COUNTED}c.KubeSpawner.profile_list = {PROFILES!r}\n"


@pytest.fixture
def hub(start_gpu_hub: StartGPUHub, add_nodes: AddNodes) -> Iterator[RunningHub]:
    add_nodes(NODES)
    with start_gpu_hub(CONFIGURATION) as running:
        yield running


def test_each_failure_is_told_in_a_sentence_and_leaves_nothing_behind(hub: RunningHub) -> None:
    def start(slug: str) -> dict[str, Any]:
        assert hub.start(slug, {"profile": slug}).status_code == 202
        return hub.events(slug)[-1]

    with ThreadPoolExecutor(len(FAULTS)) as users:
        last = dict(zip(FAULTS, users.map(start, FAULTS), strict=True))

    assert {slug: event["message"] for slug, event in last.items()} == {
        slug: f"Spawn failed: {it.sentence}" for slug, it in FAULTS.items()
    }
    assert all(
        "<details" in last[slug]["html_message"] for slug in {*FAULTS} - {"slow-image", "silent"}
    )
    wait_for(lambda: not hub.pods.names())
    assert hub.lives


LEAVES_AT_ONCE = {
    "key": "node.kubernetes.io/unreachable",
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": 1,
}
PATIENT = profile("lab", {"pull-seconds": "forever"})
PATIENT["kubespawner_override"]["tolerations"].append(LEAVES_AT_ONCE)


@pytest.fixture
def patient_hub(kept_hub: LendHub, add_nodes: AddNodes) -> RunningHub:
    """A hub whose servers wait for their images for ever."""
    add_nodes(NODES)
    return kept_hub(f"{ANSWER_AT_ONCE}{COUNTED}c.KubeSpawner.profile_list = [{PATIENT!r}]")


def deleted(hub: RunningHub) -> None:
    hub.pods.delete("ann")


def evicted(hub: RunningHub) -> None:
    low = {"metadata": {"annotations": {"localcluster/low-memory": "60Mi"}}}
    hub.pods.cluster.api.patch(f"/api/v1/nodes/{node_of(hub)}", low)


def preempted(hub: RunningHub) -> None:
    api = hub.pods.cluster.api
    name = f"{hub.pods.namespace}-first"
    api.create(PRIORITIES, {"metadata": {"name": name}, "value": 1000})
    server = hub.pods.of("ann")
    asks = {"limits": {"nvidia.com/gpu": "32"}}
    spec = {
        "priorityClassName": name,
        "containers": [{"name": "x", "image": "x", "resources": asks}],
        **{key: server["spec"][key] for key in ("nodeSelector", "tolerations")},
    }
    api.create(hub.pods.path, {"metadata": {"name": "urgent"}, "spec": spec})
    api.delete(f"{PRIORITIES}/{name}")


def of_a_lost_node(hub: RunningHub) -> None:
    lose(hub.pods.cluster.api, node_of(hub))


def node_of(hub: RunningHub) -> str:
    node: str = hub.pods.bound("ann")["spec"]["nodeName"]
    return node


PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
AGAIN = "Please start your server again; it may get another machine."


@pytest.mark.parametrize(
    ("happens", "sentence"),
    [
        (deleted, "Your server was deleted while it was starting."),
        (evicted, "The machine ran short of memory or disk space, so your server was stopped."),
        (preempted, "Your server had to make room for one with a higher priority."),
        (of_a_lost_node, "The machine is being taken out of service."),
    ],
)
def test_a_pod_that_is_taken_away_while_it_starts_ends_the_start(
    patient_hub: RunningHub, happens: Callable[[RunningHub], None], sentence: str
) -> None:
    assert patient_hub.start("ann", {"profile": "lab"}).status_code == 202
    with ThreadPoolExecutor(1) as page:
        events = page.submit(patient_hub.events, "ann")
        patient_hub.pods.bound("ann")
        happens(patient_hub)

    assert events.result()[-1]["message"] == f"Spawn failed: {sentence} {AGAIN}"
    wait_for(lambda: "jupyter-ann" not in patient_hub.pods.names())
    assert patient_hub.lives


def test_a_server_that_its_scheduler_leaves_waiting_ends_after_the_hub_s_own_timeout(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes
) -> None:
    add_nodes(NODES)
    nobody = 'c.KubeSpawner.scheduler_name = "nobody"\nc.KubeSpawner.start_timeout = 3\n'
    offered = f"c.KubeSpawner.profile_list = [{profile('lab', {})!r}]\n"
    with start_gpu_hub(ANSWER_AT_ONCE + nobody + offered) as hub:
        assert hub.start("ann", {"profile": "lab"}).status_code == 202
        last = hub.events("ann")[-1]

        assert last["message"] == (
            "Spawn failed: The cluster didn't find a machine for your server in time. "
            "Please try again later, or tell your administrator."
        )
        wait_for(lambda: not hub.pods.names())
