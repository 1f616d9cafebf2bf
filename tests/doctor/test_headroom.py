"""`capacity --servers` against what happens when so many pods are really created."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from localcluster import (
    ApiError,
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
from localcluster.clusterautoscaler.autoscaler import STATUS_PATH
from tests.localcluster.seen import TOLERANT, event
from tests.waiting import wait_for

KARPENTER = pytest.mark.nightly(why="Karpenter takes minutes to build; its tests of units stay")
T4 = {"pool": "t4"}
GPU = "nvidia.com/gpu"
IMAGE = "example.org/lab:1"
NODES = "/api/v1/nodes"
TAINT = Taint(GPU, "present", "NoSchedule")
ROOM = {"cpu": "8", "memory": "32Gi", "pods": "110", GPU: "2"}
CONFIGURATION = f"""
c.KubeSpawner.image = {IMAGE!r}
c.KubeSpawner.mem_guarantee = "2G"
c.GPUSpawner.accelerators = {{"t4": {{
    "display_name": "Tesla T4", "node_selector": {T4!r}, "tolerations": {TOLERANT!r}}}}}
"""


def server(name, **spec):
    """A pod like those of servers, as a hub with this configuration creates it."""
    amounts = {"memory": "2G", GPU: "1"}
    container = {
        "name": "notebook",
        "image": IMAGE,
        "resources": {"requests": amounts, "limits": {GPU: "1"}},
    }
    spec = {"nodeSelector": T4, "tolerations": TOLERANT, "containers": [container], **spec}
    annotations = {"localcluster/pull-seconds": "0.1"}
    return {"metadata": {"name": name, "annotations": annotations}, "spec": spec}


CORE = NodeGroup("core", 1, {"cpu": "1", "memory": "1Gi", "pods": "110"}, {"pool": "core"})


class World:
    """A hub's namespace, and the pods that are created in it."""

    def __init__(self, hub):
        self.hub, self.api = hub, hub.cluster.api
        self.path = f"/api/v1/namespaces/{hub.namespace}"

    def create(self, *pods):
        """Create pods; return the names of those that the API server accepts."""
        accepted = []
        for pod in pods:
            try:
                self.api.create(f"{self.path}/pods", pod)
                accepted.append(pod["metadata"]["name"])
            except ApiError as error:
                if error.status != 403:
                    raise
        return accepted

    def nodes_of(self, names):
        """Return the nodes of those of these pods that run."""
        return [
            it["spec"]["nodeName"]
            for it in self._named(names)
            if it["status"]["phase"] == "Running"
        ]

    def run(self, *pods):
        """Create pods, and wait until they run."""
        names = self.create(*pods)
        wait_for(lambda: len(self.nodes_of(names)) == len(pods))

    def delete(self, name):
        """Delete a pod, and wait until it is gone."""
        self.api.delete(f"{self.path}/pods/{name}", grace=0)
        wait_for(lambda: not self._named([name]))

    def wake_scheduler(self, preempted):
        """Let a pod come and go once these are gone.

        kube-scheduler (1.36) preempts in the background and can miss the end of the last victim.
        Then it tries the pod that waits for that room again only when another one ends, or after
        five minutes.
        """
        wait_for(lambda: not self._named(preempted))
        passing = server("passing")
        passing["spec"]["containers"][0]["resources"] = {"requests": {"memory": "1M"}}
        self.run(passing)
        self.delete("passing")

    def _named(self, names):
        return [it for it in self.api.items(f"{self.path}/pods") if it["metadata"]["name"] in names]

    def autoscaler_status(self):
        """Return what Cluster Autoscaler has written last."""
        maps, _, name = STATUS_PATH.rpartition("/")
        found = self.api.items(f"{maps}?fieldSelector=metadata.name={name}")
        return "".join(it["data"]["status"] for it in found)

    def waiting(self, names):
        """Return those of these pods that don't run."""
        pods = [it for it in self._named(names) if it["status"]["phase"] != "Running"]
        return [it["metadata"]["name"] for it in pods]

    def said_no(self, name, autoscaler):
        """Whether the scheduler and the autoscaler have found no node for a pod."""
        reason = REASONS.get(autoscaler, "FailedScheduling")
        writer = autoscaler or "default-scheduler"
        return bool(event(self.hub.cluster, self.hub.namespace, name, reason, writer))

    def pulled(self):
        """Return how many nodes list the servers' image."""
        return sum(
            any(IMAGE in it["names"] for it in node["status"].get("images") or ())
            for node in self.api.items(NODES)
        )

    def capacity(self, servers, *arguments):
        """Return what the command says."""
        asked = ("--servers", str(servers), "--profile", "t4", *arguments)
        return self.ask("capacity", *asked)

    def ask(self, *arguments):
        """Run a command."""
        path = str(self.hub.folder / "jupyterhub_config.py")
        _, printed = self.hub.ask(*arguments, "--config", path, "--output", "json")
        return json.loads(printed)


PLACEHOLDERS = ("warm-0", "warm-1", "warm-2")
REASONS = {"cluster-autoscaler": "NotTriggerScaleUp", "karpenter": "FailedScheduling"}


def nothing(world):
    """Nobody else is there."""


def others_in_the_way(world):
    """Others hold all GPUs, and one more waits for a node that is on its way."""
    world.run(server("other-0"), server("other-1"))
    world.create(server("other-2"))
    wait_for(lambda: "cloudProviderTarget: 2" in world.autoscaler_status())


def a_quota_of_the_cloud(world):
    """The cloud has refused a machine, so the autoscaler leaves the pool alone."""
    world.run(server("other-0"), server("other-1"))
    world.create(server("other-2"))
    wait_for(lambda: "QUOTA_EXCEEDED" in world.autoscaler_status())
    for name in ("other-0", "other-1", "other-2"):
        world.delete(name)


def a_node_was_needed(world):
    """Karpenter has made one node and counted it, so the hub knows its kind."""
    world.run(server("first"))
    world.delete("first")
    pool = "/apis/karpenter.sh/v1/nodepools/t4"
    wait_for(lambda: world.api.get(pool)["status"].get("resources", {}).get(GPU) == "1")


def a_quota(world):
    """The namespace may have three GPUs."""
    hard = {f"requests.{GPU}": "3", "requests.memory": "100Gi"}
    quotas = f"{world.path}/resourcequotas"
    world.api.create(quotas, {"metadata": {"name": "team"}, "spec": {"hard": hard}})
    wait_for(lambda: world.api.get(f"{quotas}/team").get("status", {}).get("hard") == hard)


def one_has_pulled(world):
    """One node has the image."""
    world.run(server("first"))
    world.delete("first")


def placeholders(world):
    """The chart's PriorityClass, and what `gpuspawner warm` prints."""
    name = f"{world.hub.namespace}-user-placeholder-priority"
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    world.api.create(classes, {"metadata": {"name": name}, "value": -10})
    asked = ("--servers", "3", "--profile", "t4", "--priority-class", name)
    deployment = world.ask("warm", *asked)
    world.api.create(f"/apis/apps/v1/namespaces/{world.hub.namespace}/deployments", deployment)
    template = deployment["spec"]["template"]
    labels = template["metadata"]
    pods = [{**template, "metadata": {**labels, "name": name}} for name in PLACEHOLDERS]
    world.run(*pods)
    world.api.delete(f"{classes}/{name}")


def autoscaled(count, most, node=None, **scaling):
    """T4 nodes that Cluster Autoscaler adds to."""
    its = replace(Scaling(max_size=most, provision_seconds=0.5, device_seconds=0.5), **scaling)
    return Fleet((CORE, replace(node or NODE, count=count, scaling=its)), ClusterAutoscaler(0.3))


def karpenter(limit):
    """T4 nodes that Karpenter adds, of one GPU: its kwok provider counts what pods request."""
    machine = Requirement("node.kubernetes.io/instance-type", "In", ("t4-machine",))
    pool = NodePool("t4", (machine,), T4, (TAINT,), {GPU: limit})
    return Fleet((CORE,), Karpenter((InstanceType("t4-machine", {**ROOM, GPU: "1"}),), (pool,)))


NODE = NodeGroup("t4", 2, ROOM, T4, (TAINT,))
SMALL = replace(NODE, allocatable={**ROOM, "memory": "3Gi"})


@dataclass(frozen=True)
class Case:
    """A fleet, and what the command has to say of so many servers.

    Attributes:
        told: How many fit now, fit on new nodes, and can't start.
        new: How many nodes are added.
        pulls: How many nodes pull the image.
        before: Makes what is there before.
        preempted: How many placeholders make way.
        why: The obstacle, if any.
        autoscaler: The one that decides, if any.
    """

    fleet: Fleet
    servers: int
    told: tuple[int, int, int]
    new: int = 0
    pulls: int = 2
    before: Callable[[World], None] = nothing
    preempted: int = 0
    why: str = ""
    autoscaler: str = ""


CA = "cluster-autoscaler"
SLOW = autoscaled(1, 3, provision_seconds=30.0)
NO_QUOTA = autoscaled(1, 4, stock=0, failure_seconds=0.3, error_code="QUOTA_EXCEEDED")
MOST = "at-maximum"
CASES = {
    "all fit": Case(Fleet((NODE,)), 4, (4, 0, 0)),
    "two lack a GPU": Case(Fleet((NODE,)), 6, (4, 0, 2)),
    "memory is short": Case(Fleet((SMALL,)), 4, (2, 0, 2)),
    "a quota": Case(Fleet((NODE,)), 5, (3, 0, 2), before=a_quota),
    "an image is there": Case(Fleet((NODE,)), 4, (4, 0, 0), pulls=1, before=one_has_pulled),
    "placeholders": Case(Fleet((NODE,)), 4, (4, 0, 0), before=placeholders, preempted=3),
    "new nodes": Case(autoscaled(1, 4), 5, (2, 3, 0), 2, 3, autoscaler=CA),
    "at the maximum": Case(autoscaled(2, 2), 6, (4, 0, 2), why=MOST, autoscaler=CA),
    "up to the maximum": Case(autoscaled(1, 3), 9, (2, 4, 3), 2, 3, why=MOST, autoscaler=CA),
    "memory is short on new nodes": Case(
        autoscaled(1, 4, SMALL), 5, (1, 3, 1), 3, 4, why=MOST, autoscaler=CA
    ),
    "others": Case(SLOW, 5, (0, 3, 2), 2, 2, others_in_the_way, why=MOST, autoscaler=CA),
    "the cloud's quota": Case(
        NO_QUOTA, 4, (2, 0, 2), 0, 0, a_quota_of_the_cloud, why="quota", autoscaler=CA
    ),
}
EACH_TIME = {"all fit", "two lack a GPU", "new nodes"}
MANY = pytest.mark.nightly("each fleet is a cluster of its own, and these differ in one thing only")
OF_KARPENTER = {
    "Karpenter": Case(karpenter("8"), 4, (1, 3, 0), 3, 3, a_node_was_needed),
    "Karpenter's limit": Case(karpenter("3"), 5, (1, 2, 2), 2, 2, a_node_was_needed, why="limit"),
}


@pytest.mark.parametrize(
    "case",
    [
        *(
            pytest.param(case, id=name, marks=() if name in EACH_TIME else MANY)
            for name, case in CASES.items()
        ),
        *(
            pytest.param(replace(case, autoscaler="karpenter"), id=name, marks=KARPENTER)
            for name, case in OF_KARPENTER.items()
        ),
    ],
)
def test_it_says_what_happens_then(hub, add_nodes, growing_cluster, case):
    hub.configure(CONFIGURATION)
    (growing_cluster if case.fleet.autoscaler else add_nodes)(case.fleet)
    world = World(hub)
    if case.autoscaler == CA:
        wait_for(lambda: "name: t4" in world.autoscaler_status())
    case.before(world)
    nodes, pulled = len(world.api.items(NODES)), world.pulled()

    told = world.capacity(case.servers)

    fit, on_new, _ = case.told
    assert (told["fits_now"], told["on_new_nodes"], told["lacking"]) == case.told
    assert sum(it["nodes"] for it in told["new_nodes"]) == case.new
    assert [(it["image"], it["nodes"]) for it in told["pulls"]] == [(IMAGE, case.pulls)] * bool(
        case.pulls
    )
    assert told["preempted"] == case.preempted
    assert [it["why"] for it in told["obstacles"]] == [case.why] * bool(case.why)

    # kube-scheduler keeps no order between pods that wait and new ones, so these come later.
    wait_for(lambda: len(world.waiting(["other-2"])) == 0)
    names = world.create(*(server(f"course-{it}") for it in range(case.servers)))
    if case.preempted:
        world.wake_scheduler(PLACEHOLDERS)
    wait_for(lambda: len(world.nodes_of(names)) >= fit + on_new)
    wait_for(lambda: all(world.said_no(it, case.autoscaler) for it in world.waiting(names)))
    assert len(world.nodes_of(names)) == fit + on_new
    assert len(world.api.items(NODES)) == nodes + case.new
    assert world.pulled() == pulled + case.pulls
