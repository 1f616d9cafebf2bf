"""Servers that don't see their GPUs: their owners are told, and the next try goes elsewhere."""

from __future__ import annotations

import json

import pytest

from gpuspawner.offers.visible_gpus import CONTAINER
from localcluster import Fleet, LocalCluster, NodeGroup
from localcluster.nodes import HIDDEN_DEVICES
from tests.fixtures.cluster import AddNodes
from tests.hub.configurations import ANSWER_AT_ONCE, T4, t4_nodes
from tests.hub.kept import LendHub
from tests.hub.people import Person
from tests.hub.running import RunningHub
from tests.waiting import wait_for

TWO = {"accelerator": "t4", "gpus": 2}
NODES = {"t4-0", "t4-1"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ELSEWHERE = "Your server gets another machine than the one whose GPUs failed."
ANYWHERE = "Your server may get the machine whose GPUs failed: no other surely has room."
CONFIGURATION = f"{ANSWER_AT_ONCE}{T4}c.GPUSpawner.check_gpus = True\n"


@pytest.fixture
def hub(kept_hub: LendHub, add_nodes: AddNodes) -> RunningHub:
    add_nodes(t4_nodes(2, gpus=2))
    return kept_hub(CONFIGURATION)


SHARED = {"gpu": "t4", "nvidia.com/gpu.sharing-strategy": "mps"}
AMOUNTS = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "4"}


def test_several_shares_of_a_gpu_are_refused_before_a_plugin_has_to(
    kept_hub: LendHub, add_nodes: AddNodes
) -> None:
    add_nodes(Fleet((NodeGroup("t4", 1, AMOUNTS, labels=SHARED),)))
    hub = kept_hub(T4)

    refused = hub.start("dan", TWO)

    assert refused.status_code == 409, refused.text
    assert refused.json()["message"] == (
        "The Tesla T4 machines share their GPUs, and give a server only one share of a GPU. "
        "You can have 1 × Tesla T4, or start without a GPU."
    )
    hub.start_until_ready("dan", {"accelerator": "t4"})


def hide(cluster: LocalCluster, node: str, gpus: int) -> None:
    """Let the containers of a node see so many GPUs fewer than they have."""
    annotations = {HIDDEN_DEVICES: json.dumps({"nvidia.com/gpu": gpus})}
    cluster.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"annotations": annotations}})


def told(hub: RunningHub, user: str) -> list[str]:
    """What the progress of a start says, until it ends."""
    return [event["message"] for event in hub.events(user) if event.get("message")]


def fails(hub: RunningHub, user: str) -> list[str]:
    """Start a server that fails, until its pod is gone; return what its progress says."""
    # After a failed start, JupyterHub 6.1 answers 201 for one in progress.
    assert hub.start(user, TWO).status_code in {201, 202}
    said = told(hub, user)
    hub.events_end(user)
    wait_for(lambda: f"jupyter-{user}" not in hub.pods.names())
    return said


def free(person: Person) -> int:
    """How many GPUs are free, as the hub sees it."""
    url = f"{person.hub.url}/hub/gpuspawner/states/{person.name}/"
    headers = {"Sec-Fetch-Mode": "cors", "X-XSRFToken": person.xsrf}
    t4, _ = person.session.get(url, headers=headers).json()["accelerators"]
    return int(t4["gpus"]["free"])


def test_a_server_that_sees_its_gpus_starts_and_has_them(hub: RunningHub) -> None:
    hub.start_until_ready("ann", TWO)

    pod = hub.pods.of("ann")

    [check] = pod["status"]["initContainerStatuses"]
    assert (check["name"], check["state"]["terminated"]["exitCode"]) == (CONTAINER, 0)
    log = hub.pods.cluster.directory / "pods" / f"{hub.pods.namespace}_jupyter-ann"
    said = (log / f"{CONTAINER}.log").read_text()
    assert said == "gpuspawner: 2 of 2 GPUs visible: Tesla T4, Tesla T4\n"


@pytest.mark.parametrize(("hidden", "visible"), [(1, "only 1 is visible"), (2, "none is visible")])
def test_a_server_that_sees_fewer_ends_at_once_and_leaves_no_pod(
    hub: RunningHub, cluster: LocalCluster, hidden: int, visible: str
) -> None:
    for node in NODES:
        hide(cluster, node, hidden)

    last = fails(hub, "ben")[-1]

    assert last == (
        f"Spawn failed: The machine should have given your server 2 × Tesla T4, but {visible}."
        " Please start your server again; it may get another machine."
    )


def test_the_next_try_gets_another_node_as_soon_as_one_has_room(
    hub: RunningHub, cluster: LocalCluster
) -> None:
    hub.start_until_ready("other", TWO)
    other = hub.pods.of("other")["spec"]["nodeName"]
    [broken] = NODES - {other}
    hide(cluster, broken, 1)
    fails(hub, "cem")
    assert ANYWHERE in fails(hub, "cem"), "no other node had room"

    hub.stop("other")
    cem = hub.person("cem")
    wait_for(lambda: free(cem) == 4)
    hub.start("cem", TWO)
    said = told(hub, "cem")
    hub.until_ready("cem")

    assert ELSEWHERE in said
    pod = hub.pods.of("cem")
    required = pod["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    [[avoids]] = [term["matchExpressions"] for term in required]
    assert avoids == {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": [broken]}
    assert pod["spec"]["nodeName"] == other
