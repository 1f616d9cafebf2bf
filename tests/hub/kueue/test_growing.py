"""A pool at zero nodes grows for a server that the real Kueue has admitted."""

import pytest

from localcluster import ClusterAutoscaler, Fleet, NodeGroup, Scaling
from tests.hub.configurations import ANSWER_AT_ONCE, T4
from tests.hub.queues import Queues, end_of
from tests.waiting import wait_for

POOL = "eks.amazonaws.com/nodegroup"
GPUS = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "2"}
ONE_NODE = Scaling(max_size=1, provision_seconds=1.0, device_seconds=1.0)
FLEET = Fleet(
    (
        NodeGroup("core", 1, {"cpu": "1", "memory": "1Gi", "pods": "110"}, {POOL: "core"}),
        NodeGroup("t4", 0, GPUS, {POOL: "t4", "gpu": "t4"}, (), ONE_NODE),
    ),
    ClusterAutoscaler(scan_seconds=0.5),
)


@pytest.fixture
def kueue(cluster, queueing):
    running = queueing(cluster)
    yield running
    running.remove_objects()


def test_a_node_comes_for_a_server_that_kueue_admits_and_the_next_one_is_refused(
    start_gpu_hub, cluster, growing_cluster, kueue
):
    kueue.process.check()
    growing_cluster(FLEET)
    limit = "c.GPUSpawner.scheduling_timeout = 5\n"
    with start_gpu_hub(T4 + ANSWER_AT_ONCE + limit) as hub:
        queues = Queues(cluster, hub.pods.namespace)
        queues.add("team-a", 8)
        queues.lead("team-a")

        hub.start_until_ready("alice", {"accelerator": "t4", "gpus": 2})
        hub.start("bob", {"accelerator": "t4"})

        assert end_of(hub, "bob").startswith(
            "Spawn failed: No Tesla T4 is free right now: all 2 are in use."
        )
        wait_for(lambda: hub.pods.names() == {"jupyter-alice"})
