"""A start whose image is downloaded: its progress says how large the image is."""

from __future__ import annotations

import pytest

from localcluster import Fleet, LocalCluster, NodeGroup
from tests.fixtures.cluster import AddNodes
from tests.hub.configurations import ANSWER_AT_ONCE
from tests.hub.kept import LendHub
from tests.hub.running import RunningHub

ROOM = {"cpu": "8", "memory": "32Gi", "pods": "110"}
CONFIGURATION = f"""{ANSWER_AT_ONCE}
c.KubeSpawner.node_selector = {{"kubernetes.io/hostname": "loads-0"}}
c.KubeSpawner.extra_annotations = {{"localcluster/pull-seconds": "2"}}
c.KubeSpawner.image = "downloads-lab:1"
"""


@pytest.fixture
def hub(kept_hub: LendHub, add_nodes: AddNodes, cluster: LocalCluster) -> RunningHub:
    add_nodes(Fleet((NodeGroup("loads", 1, ROOM), NodeGroup("has", 1, ROOM))))
    images = [{"names": ["docker.io/library/downloads-lab:1"], "sizeBytes": 12_345_678_901}]
    cluster.api.patch("/api/v1/nodes/has-0/status", {"status": {"images": images}})
    return kept_hub(CONFIGURATION)


def test_a_download_is_as_large_as_another_node_says(hub: RunningHub) -> None:
    hub.start("alice", {})

    told = [event.get("message", "") for event in hub.events("alice")]

    assert "Downloading your server's software (12 GB)." in " ".join(told)
