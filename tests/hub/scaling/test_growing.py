"""Pools at zero nodes, each with a real hub: the node comes, or its owner reads why it doesn't."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from localcluster import (
    ClusterAutoscaler,
    Fleet,
    InstanceType,
    Karpenter,
    NodeGroup,
    NodePool,
    Requirement,
    Scaling,
    Taint,
)
from tests.fixtures.cluster import AddNodes, GrowingCluster
from tests.hub.configurations import ANSWER_AT_ONCE
from tests.hub.conftest import StartGPUHub
from tests.hub.running import RunningHub
from tests.waiting import wait_for

KARPENTER = pytest.mark.nightly(why="Karpenter takes minutes to build; its tests of units stay")
FAST = ClusterAutoscaler(scan_seconds=0.5)
POOL = "eks.amazonaws.com/nodegroup"
# Karpenter's limits tell at once that all is taken; Cluster Autoscaler has to be asked.
NO_MORE = re.compile(
    "No more machines can be added"
    "|The machines that can still be added are for servers that are already waiting"
)
TAINT = Taint("nvidia.com/gpu", "present", "NoSchedule")
GPUS = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "2"}
CPUS = {"cpu": "4", "memory": "16Gi", "pods": "110"}
# A cluster always has a node for the hub, which has no room for servers.
CORE = NodeGroup("core", 1, {"cpu": "1", "memory": "1Gi", "pods": "110"}, {POOL: "core"})


def group(name: str, amounts: dict[str, str], **scaling: object) -> NodeGroup:
    """A node group at zero that may have one node."""
    return NodeGroup(
        name,
        0,
        amounts,
        {POOL: name, "pool": name},
        (TAINT,) if amounts is GPUS else (),
        replace(Scaling(max_size=1, provision_seconds=1.0, device_seconds=1.0), **scaling),
    )


def node_pool(name: str, amounts: dict[str, str]) -> NodePool:
    """A NodePool without nodes that may have one."""
    limited = "nvidia.com/gpu" if amounts is GPUS else "cpu"
    machine = Requirement("node.kubernetes.io/instance-type", "In", (f"{name}-machine",))
    return NodePool(
        name,
        (machine,),
        {"pool": name},
        (TAINT,) if amounts is GPUS else (),
        {limited: amounts[limited]},
    )


def fleets(pools: dict[str, dict[str, str]], device_seconds: float = 1.0) -> list[object]:
    """The same pools, at zero, once with each autoscaler."""
    groups = (group(*pool, device_seconds=device_seconds) for pool in pools.items())
    autoscaled = Fleet((CORE, *groups), FAST)
    karpenter = Karpenter(
        tuple(InstanceType(f"{name}-machine", amounts) for name, amounts in pools.items()),
        tuple(node_pool(name, amounts) for name, amounts in pools.items()),
        device_seconds=device_seconds,
    )
    return [
        pytest.param(autoscaled, id="Cluster Autoscaler"),
        pytest.param(Fleet((CORE,), karpenter), id="Karpenter", marks=KARPENTER),
    ]


TOLERATION = '[{"key": "nvidia.com/gpu", "operator": "Exists"}]'
ACCELERATORS = f"""
c.KubeSpawner.node_selector = {{}}
c.GPUSpawner.accelerators = {{"t4": {{
    "display_name": "Tesla T4", "counts": [1, 2], "node_selector": {{"pool": "t4"}},
    "tolerations": {TOLERATION}}}}}
c.GPUSpawner.memory_choices = ["2Gi", "64Gi"]
"""
PROFILES = f"""
def gpu(pool):
    return {{"node_selector": {{"pool": pool}}, "tolerations": {TOLERATION},
            "extra_resource_limits": {{"nvidia.com/gpu": "1"}}, "mem_guarantee": "2G"}}
def cpu(pool):
    return {{"node_selector": {{"pool": pool}}, "mem_guarantee": "2G"}}
c.KubeSpawner.profile_list = [
    {{"display_name": "GPU", "slug": "gpu", "kubespawner_override": gpu("t4")}},
    {{"display_name": "CPU", "slug": "cpu", "kubespawner_override": cpu("small")}},
    {{"display_name": "Any", "slug": "any", "profile_options": {{"size": {{"choices": {{
        "gpu": {{"display_name": "with a GPU", "kubespawner_override": gpu("l4")}},
        "cpu": {{"display_name": "without", "kubespawner_override": cpu("large")}}}}}}}}}},
]
"""
ASKED = [
    pytest.param(
        ACCELERATORS,
        {"alice": {"accelerator": "t4"}, "bob": {"accelerator": None, "memory": "2Gi"}},
        id="accelerators",
    ),
    pytest.param(
        PROFILES,
        {
            "alice": {"profile": "gpu"},
            "bob": {"profile": "cpu"},
            "carol": {"profile": "any", "size": "gpu"},
            "dan": {"profile": "any", "size": "cpu"},
        },
        id="profiles",
    ),
]
SOME = fleets({"t4": GPUS, "l4": GPUS, "small": CPUS, "large": CPUS})


@pytest.mark.parametrize("fleet", SOME)
@pytest.mark.parametrize(("configuration", "asked"), ASKED)
def test_each_server_starts_on_a_node_that_its_pool_at_zero_adds(
    start_gpu_hub: StartGPUHub,
    growing_cluster: GrowingCluster,
    fleet: Fleet,
    configuration: str,
    asked: dict[str, dict[str, str]],
) -> None:
    growing_cluster(fleet)
    with start_gpu_hub(configuration + ANSWER_AT_ONCE) as hub:
        for user, options in asked.items():
            assert hub.start(user, options).status_code == 202

        for user in asked:
            hub.until_ready(user)


def end_of(hub: RunningHub, user: str, options: dict[str, str]) -> str:
    """Start *user*'s server; return "ready", or what its owner reads instead."""
    answer = hub.start(user, options)
    if answer.status_code >= 400:
        return str(answer.json()["message"])
    last = hub.events(user)[-1]
    return "ready" if last.get("ready") else str(last["message"])


@pytest.mark.parametrize("fleet", fleets({"t4": GPUS, "small": CPUS}))
def test_seven_people_share_two_gpus_that_can_come_and_the_others_read_why_not(
    start_gpu_hub: StartGPUHub, growing_cluster: GrowingCluster, fleet: Fleet
) -> None:
    growing_cluster(fleet)
    with start_gpu_hub(ACCELERATORS + ANSWER_AT_ONCE) as hub, ThreadPoolExecutor(7) as crowd:
        ends = [
            crowd.submit(end_of, hub, f"user-{number}", {"accelerator": "t4", "memory": "2Gi"})
            for number in range(7)
        ]
        told = [end.result() for end in ends]

        assert told.count("ready") == 2
        assert all(NO_MORE.search(it) for it in told if it != "ready"), told

        # Nothing of this is a failure of the hub: its limit of five is not reached.
        assert hub.lives
        assert end_of(hub, "plain", {"accelerator": None, "memory": "2Gi"}) == "ready"

        # Now each pool has shown its nodes, so the form itself knows.
        late = hub.person("late")
        assert "more machines can be added" in late.submit({"accelerator": "t4"}).text
        too_large = late.submit({"accelerator": "t4", "memory": "64Gi"})
        assert "The cluster can't add a machine that would hold your server." in too_large.text


@KARPENTER
def test_nobody_is_refused_for_a_limit_that_only_karpenters_first_round_reaches(
    start_gpu_hub: StartGPUHub, growing_cluster: GrowingCluster
) -> None:
    """It counts the largest type for each machine of a round; ten small ones are within it."""
    one = {**GPUS, "nvidia.com/gpu": "1"}
    types = InstanceType("small", one), InstanceType("large", {**one, "cpu": "64"}, price=2.0)
    choice = Requirement("node.kubernetes.io/instance-type", "In", ("small", "large"))
    pool = NodePool("t4", (choice,), {"pool": "t4"}, (TAINT,), {"cpu": "150"})
    growing_cluster(Fleet((CORE,), Karpenter(types, (pool,), device_seconds=1.0)))
    with start_gpu_hub(ACCELERATORS + ANSWER_AT_ONCE) as hub, ThreadPoolExecutor(10) as crowd:
        options = {"accelerator": "t4", "memory": "2Gi"}
        ends = [crowd.submit(end_of, hub, f"user-{number}", options) for number in range(10)]

        assert [end.result() for end in ends] == ["ready"] * 10


SOLD_OUT = [
    pytest.param(
        Fleet((CORE, group("t4", GPUS, stock=0, failure_seconds=1.0)), FAST),
        "RESOURCE_POOL_EXHAUSTED",
        id="Cluster Autoscaler",
    ),
    pytest.param(
        Fleet(
            (CORE,),
            Karpenter(
                (InstanceType("t4-machine", GPUS, is_sold_out=True),), (node_pool("t4", GPUS),)
            ),
        ),
        "filtered out all available instance types",
        id="Karpenter",
        marks=KARPENTER,
    ),
]


@pytest.mark.parametrize(("fleet", "detail"), SOLD_OUT)
def test_a_sold_out_machine_ends_the_start_with_that_reason(
    start_gpu_hub: StartGPUHub, growing_cluster: GrowingCluster, fleet: Fleet, detail: str
) -> None:
    growing_cluster(fleet)
    with start_gpu_hub(ACCELERATORS + ANSWER_AT_ONCE) as hub:
        for user in ("alice", "bob"):
            told = end_of(hub, user, {"accelerator": "t4", "memory": "2Gi"})

            assert "The cloud provider has no such machine available right now." in told
        assert detail in hub.log


# Two of twenty minutes, so that the test needn't take that long.
IMPATIENT = """
from gpuspawner.scaling import usual_times
usual_times.LEAST_MINUTES, usual_times.TRIAL_SECONDS = 0.1, 2
"""


@pytest.mark.parametrize("fleet", fleets({"t4": GPUS}, device_seconds=3600.0))
def test_a_new_machine_that_never_gets_its_gpu_ends_the_start_and_leaves_no_pod(
    start_gpu_hub: StartGPUHub, growing_cluster: GrowingCluster, fleet: Fleet
) -> None:
    growing_cluster(fleet)
    with start_gpu_hub(ACCELERATORS + ANSWER_AT_ONCE + IMPATIENT) as hub:
        told = end_of(hub, "alice", {"accelerator": "t4", "memory": "2Gi"})

        assert "A new machine was expected, but it didn't come in time." in told
        wait_for(lambda: not hub.pods.all())


# Two seconds instead of a minute.
SHORT_TRIALS = "c.GPUSpawner.trial_timeout = 2\n"


def test_without_an_autoscaler_s_answer_a_trial_ends_and_is_remembered(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes
) -> None:
    add_nodes(Fleet((CORE,)))
    with start_gpu_hub(ACCELERATORS + ANSWER_AT_ONCE + SHORT_TRIALS) as hub:
        told = end_of(hub, "alice", {"accelerator": "t4", "memory": "2Gi"})
        again = end_of(hub, "bob", {"accelerator": "t4", "memory": "2Gi"})

        assert "didn't add a machine while a server like this waited" in told
        assert "didn't add a machine while a server like this waited" in again
        assert "create pod jupyter-alice" in hub.log
        assert "create pod jupyter-bob" not in hub.log
        assert not hub.pods.all()


def test_a_pool_at_zero_grows_though_its_autoscaler_looks_only_after_a_trial_would_have_ended(
    start_gpu_hub: StartGPUHub, growing_cluster: GrowingCluster
) -> None:
    growing_cluster(Fleet((CORE, group("t4", GPUS)), ClusterAutoscaler(scan_seconds=20)))
    trials = "c.GPUSpawner.trial_timeout = 1\n"
    with start_gpu_hub(ACCELERATORS + ANSWER_AT_ONCE + trials) as hub:
        assert end_of(hub, "alice", {"accelerator": "t4", "memory": "2Gi"}) == "ready"
        assert end_of(hub, "bob", {"accelerator": "t4", "memory": "2Gi"}) == "ready"


def test_on_gke_an_unlisted_pool_is_tried_and_the_autoscalers_no_remembered(
    start_gpu_hub: StartGPUHub, growing_cluster: GrowingCluster
) -> None:
    nap = {"cloud.google.com/gke-nodepool": "nap-1acv0bno"}
    core = replace(CORE, labels={**CORE.labels, **nap})
    # The autoscaler may add two small nodes before the first is ready: none is at its maximum.
    growing_cluster(Fleet((core, group("small", CPUS, max_size=9)), FAST))
    with start_gpu_hub(ACCELERATORS + ANSWER_AT_ONCE) as hub:
        assert end_of(hub, "carol", {"accelerator": None, "memory": "2Gi"}) == "ready"
        told = end_of(hub, "alice", {"accelerator": "t4", "memory": "2Gi"})
        again = hub.start("bob", {"accelerator": "t4", "memory": "2Gi"})

        assert "create pod jupyter-alice" in hub.log
        assert "The cluster can't add a machine that would hold your server." in told
        assert again.status_code == 409
        assert "create pod jupyter-bob" not in hub.log
