"""Ways in which a start fails after the click, as the local cluster plays them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from localcluster import (
    ClusterAutoscaler,
    Fleet,
    InstanceType,
    Karpenter,
    NodeGroup,
    NodePool,
    Requirement,
    Scaling,
)
from localcluster.client import Client
from localcluster.losses import lose
from tests.waiting import wait_for

URGENT = "urgent"
CLAIM = "home"
MACHINE = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "1"}
SOLD_OUT = Scaling(max_size=1, stock=0)
NEVER = 3600.0
WITHOUT_GPU = Scaling(max_size=1, provision_seconds=1.0, device_seconds=NEVER)
WAITING = {"pull-seconds": "forever"}
LEAVES_AT_ONCE = {
    "key": "node.kubernetes.io/unreachable",
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": 1,
}


@dataclass(frozen=True)
class Place:
    """Where one start happens.

    Attributes:
        api: A client of its own.
        node: The only node that the server fits on.
        pod: The server's pod.
    """

    api: Client
    namespace: str
    node: str
    pod: str

    @property
    def pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def take(self, **spec: Any) -> None:
        """Create another pod that takes the node's GPU."""
        gpu = {"limits": {"nvidia.com/gpu": "1"}}
        spec["nodeSelector"] = {"kubernetes.io/hostname": self.node}
        spec["containers"] = [{"name": "x", "image": "x", "resources": gpu}]
        self.api.create(self.pods, {"metadata": {"generateName": "other-"}, "spec": spec})

    def is_bound(self) -> bool:
        bound = self.api.items(f"{self.pods}?fieldSelector=spec.nodeName={self.node}")
        return any(pod["metadata"]["name"] == self.pod for pod in bound)

    def is_there(self) -> bool:
        return any(pod["metadata"]["name"] == self.pod for pod in self.api.items(self.pods))


@dataclass(frozen=True)
class Fault:
    """What goes wrong in one start.

    Attributes:
        slug: Of its profile, user, image and node.
        name: For the table.
        annotations: What the local cluster plays, without their prefix.
        overrides: More for the server's profile.
        before: What happens before the start.
        meanwhile: What happens as soon as the pod has a node.
        scaling: Set if the node doesn't exist yet.
    """

    slug: str
    name: str
    annotations: dict[str, str] = field(default_factory=dict)
    overrides: dict[str, Any] = field(default_factory=dict)
    before: Callable[[Place], None] | None = None
    meanwhile: Callable[[Place], None] | None = None
    scaling: Scaling | None = None

    def profile(self, hub: str) -> dict[str, Any]:
        """Return the profile whose servers fail so, on this hub's node for it."""
        override = {
            "image": f"registry.example.org/{self.slug}:1",
            "extra_resource_limits": {"nvidia.com/gpu": "1"},
            "node_selector": {"fault": f"{self.slug}-{hub}"},
            "extra_annotations": {f"localcluster/{it}": of for it, of in self.annotations.items()},
            **self.overrides,
        }
        return {"slug": self.slug, "display_name": self.name, "kubespawner_override": override}

    def nodes(self, hub: str) -> NodeGroup:
        """Return the node for it."""
        name = f"{self.slug}-{hub}"
        return NodeGroup(
            name, 0 if self.scaling else 1, MACHINE, {"fault": name}, scaling=self.scaling
        )

    def machine(self, hub: str) -> InstanceType:
        """Return Karpenter's machine for it."""
        return InstanceType(f"{self.slug}-{hub}", MACHINE, is_sold_out=self.scaling == SOLD_OUT)

    def pool(self, hub: str) -> NodePool:
        """Return Karpenter's pool for it."""
        name = f"{self.slug}-{hub}"
        machine = Requirement("node.kubernetes.io/instance-type", "In", (name,))
        return NodePool(name, (machine,), {"fault": name}, limits={"nvidia.com/gpu": "1"})


def _taken(place: Place) -> None:
    place.take()
    node = f"{place.pods}?fieldSelector=spec.nodeName={place.node}"
    wait_for(lambda: any(it["status"]["phase"] == "Running" for it in place.api.items(node)))


def _held(place: Place) -> None:
    """Bind a claim to a volume, which another node keeps."""
    volume = f"{place.namespace}-{CLAIM}"
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    held = {
        "capacity": {"storage": "1Gi"},
        "hostPath": {"path": "/nowhere"},
        "claimRef": {"namespace": place.namespace, "name": CLAIM},
    }
    asked = {"resources": {"requests": {"storage": "1Gi"}}, "volumeName": volume}
    volumes, claims = (
        "/api/v1/persistentvolumes",
        f"/api/v1/namespaces/{place.namespace}/persistentvolumeclaims",
    )
    place.api.create(volumes, {"metadata": {"name": volume}, "spec": {**spec, **held}})
    place.api.create(claims, {"metadata": {"name": CLAIM}, "spec": {**spec, **asked}})
    wait_for(lambda: place.api.get(f"{claims}/{CLAIM}")["status"].get("phase") == "Bound")


def _deleted(place: Place) -> None:
    place.api.delete(f"{place.pods}/{place.pod}", grace=0)


def _evicted(place: Place) -> None:
    low = {"metadata": {"annotations": {"localcluster/low-memory": "60Mi"}}}
    place.api.patch(f"/api/v1/nodes/{place.node}", low)


def _preempted(place: Place) -> None:
    place.take(priorityClassName=URGENT)


def _lost(place: Place) -> None:
    lose(place.api, place.node)


FAULTS = (
    Fault("busy", "Every GPU is in use", before=_taken),
    Fault("sold-out", "The cloud has no such machine", scaling=SOLD_OUT),
    Fault("never", "The new machine never gets its GPU", scaling=WITHOUT_GPU),
    Fault("image", "The image doesn't exist", {"pull-error": "not-found"}),
    Fault("password", "The image needs a password", {"pull-error": "unauthorized"}),
    Fault("registry", "The registry doesn't answer", {"pull-error": "unreachable"}),
    Fault("disk", "The node's disk is full", {"pull-error": "no-space"}),
    Fault("slow", "The image takes too long", WAITING),
    Fault("mount", "The volume can't be mounted", {"mount-error": "mount.nfs: No route to host"},
          {"volumes": [{"name": "home", "emptyDir": {}}]}),
    Fault("attach", "Another node has the volume", {"attached-elsewhere-seconds": "forever"},
          {"volumes": [{"name": "home", "persistentVolumeClaim": {"claimName": CLAIM}}]},
          before=_held),
    Fault("secret", "A Secret doesn't exist", overrides={"environment": {"PASSWORD": {
          "name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "none", "key": "x"}}}}}),
    Fault("taken", "The GPU is gone when the pod arrives", {"device-error": "unavailable"}),
    Fault("broken", "The GPU is broken", {"device-error": "unhealthy"}),
    Fault("program", "The image lacks the program", {"run-error":
          'exec: "jupyterhub-singleuser": executable file not found in $PATH'}),
    Fault("crash", "The server crashes", {
          "exits-after": "0", "exit-output": "ImportError: no module named torch"}),
    Fault("memory", "The server needs too much memory", {
          "exits-after": "0", "exit-reason": "OOMKilled", "exit-code": "137"}),
    Fault("ends", "The server ends by itself", {"exits-after": "0", "exit-code": "0"}),
    Fault("silent", "The server never answers", {"hangs": "true"}),
    Fault("deleted", "Somebody deletes the pod", WAITING, meanwhile=_deleted),
    Fault("evicted", "The node evicts the pod", WAITING, meanwhile=_evicted),
    Fault("preempted", "A pod of higher priority preempts it", WAITING, meanwhile=_preempted),
    Fault("lost", "The node is lost", WAITING, meanwhile=_lost),
    Fault("left", "The node is lost, and the pod tolerates that for 1 s", WAITING,
          {"tolerations": [LEAVES_AT_ONCE]}, meanwhile=_lost),
)  # fmt: skip


WITH_KARPENTER = (
    Fault("sold-out", "The cloud has no such machine, with Karpenter", scaling=SOLD_OUT),
    Fault("never", "The new machine never gets its GPU, with Karpenter", scaling=WITHOUT_GPU),
)


def autoscaled(hubs: tuple[str, ...]) -> Fleet:
    """Return the nodes of each hub for `FAULTS`, some of which Cluster Autoscaler would add."""
    groups = tuple(fault.nodes(hub) for fault in FAULTS for hub in hubs)
    return Fleet(groups, ClusterAutoscaler())


def with_karpenter(hubs: tuple[str, ...]) -> Fleet:
    """Return a fleet without nodes, to which Karpenter would add those for `WITH_KARPENTER`."""
    of_hubs = [(fault, hub) for fault in WITH_KARPENTER for hub in hubs]
    machines = tuple(fault.machine(hub) for fault, hub in of_hubs)
    pools = tuple(fault.pool(hub) for fault, hub in of_hubs)
    return Fleet((), Karpenter(machines, pools, device_seconds=NEVER))
