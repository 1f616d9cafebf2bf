"""The stage of starts that are cut: they stay in a phase until the test goes on."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from localcluster import Fleet, LocalCluster
from localcluster.client import unless_gone
from localcluster.ports import free_ports
from tests.race.stage import GPU, Object, Stage, node_group, staged
from tests.servers.single_user import serving_every_pod
from tests.servers.webhooks import Webhooks, configured
from tests.waiting import wait_for

NAMESPACE = "cuts"
_SCHEDULER = "bound-by-the-test"
"""A scheduler that doesn't run, so that its pods wait until the test binds them."""
_CLAIM = "files"
_CONFIGURATION = """
def name_the_image(spawner, pod):
    # No node has it yet.
    pod.spec.containers[0].image = f"registry.example.org/{{spawner.user.name}}:1"
    return pod
c.KubeSpawner.modify_pod_hook = name_the_image
# The webhook holds a request for longer than a cluster would.
c.KubeSpawner.k8s_api_request_timeout = 30
c.KubeSpawner.http_timeout = 5
# A failure that the hub counts would end it.
c.KubeSpawner.consecutive_failure_limit = 1
c.KubeSpawner.profile_list = {profiles!r}
c.GPUSpawner.default_filter_schedulers = [{scheduler!r}]
c.GPUSpawner.policies = {{"everybody": {{"gpus_per_user": 1}}}}
"""


@dataclass(frozen=True)
class Phase:
    """A phase of a start.

    Attributes:
        name: The profile's slug, with which the users' names begin.
        is_reached: Whether a pod is in it.
        faults: What the local cluster plays, by annotations without their prefix.
        overrides: What else the profile sets.
    """

    name: str
    is_reached: Callable[[Object], bool]
    faults: dict[str, str] = field(default_factory=dict)
    overrides: dict[str, Any] = field(default_factory=dict)

    @property
    def profile(self) -> dict[str, Any]:
        """The profile whose servers stay in the phase."""
        gpu: dict[str, Any] = {
            "extra_resource_limits": {GPU: "1"},
            "node_selector": {"gpu": "yes"},
            "extra_annotations": {f"localcluster/{key}": it for key, it in self.faults.items()},
            **self.overrides,
        }
        return {"slug": self.name, "display_name": self.name, "kubespawner_override": gpu}


def _is_bound(pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName"))


def _is_prepared(pod: Object) -> bool:
    """Whether the kubelet waits for volumes."""
    status = pod["status"]
    return _is_bound(pod) and "startTime" in status and not status.get("podIP")


def _waits_for_containers(pod: Object) -> bool:
    return bool(pod["status"].get("podIP")) and not _runs(pod)


def _runs(pod: Object) -> bool:
    return bool(pod["status"].get("phase") == "Running")


def _phases(seconds: float, port: int) -> tuple[Phase, ...]:
    """Return all phases.

    Args:
        seconds: How long a phase lasts that the test can't end.
        port: Where servers listen that don't do so at once.
    """
    long = f"{seconds:g}"
    volume = {"name": _CLAIM, "persistentVolumeClaim": {"claimName": _CLAIM}}
    # The scheduler that runs may not take the node that the test chooses.
    bound_later = {"scheduler_name": _SCHEDULER, "node_selector": {"gpu": _SCHEDULER}}
    return (
        # A webhook holds the request, so there is no pod yet.
        Phase("sending", lambda _pod: False),
        Phase("scheduling", lambda pod: not _is_bound(pod), {}, bound_later),
        Phase("attaching", _is_prepared, {"attach-seconds": long}, {"volumes": [volume]}),
        Phase("pulling", _waits_for_containers, {"pull-seconds": long}),
        Phase("starting", _waits_for_containers, {"start-after": long}),
        Phase("listening", _runs, {}, {"http_timeout": 60, "port": port}),
    )


class Gate:
    """A webhook that holds the pods of the phase `sending`, and counts how often each was sent."""

    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()
        self.held: set[str] = set()
        self._open = threading.Event()
        self._lock = threading.Lock()

    def close(self) -> None:
        self._open.clear()
        self.held.clear()

    def open(self) -> None:
        self._open.set()

    def review(self, pod: Object) -> Object:
        name = pod["metadata"]["name"]
        with self._lock:
            self.sent[name] += 1
        if name.startswith("jupyter-sending"):
            self.held.add(name)
            self._open.wait(25)
        return {}


@dataclass(frozen=True)
class CutStage:
    """A stage whose starts stay in their phases.

    Attributes:
        gate: Holds pods that are sent.
    """

    stage: Stage
    gate: Gate
    phases: tuple[Phase, ...]
    _for_the_test: tuple[str, ...]
    _port: int

    def pods(self) -> dict[str, Object]:
        """Return the hub's pods by name."""
        return {pod["metadata"]["name"]: pod for pod in self.stage.hub.pods.all()}

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """End the phases that the test can end: bind pods, and listen while the block lasts."""
        waiting, api = self.pods(), self.stage.cluster.api
        taken = {pod["spec"].get("nodeName") for pod in waiting.values()}
        free = [name for name in self._for_the_test if name not in taken]
        for name, pod in waiting.items():
            if pod["spec"]["schedulerName"] == _SCHEDULER and not _is_bound(pod):
                body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": free.pop()}}
                with unless_gone():
                    api.create(f"{self.stage.hub.pods.path}/{name}/binding", body)
        with serving_every_pod(self._port):
            yield


@contextmanager
def cut_stage(folder: Path, alike: int, seconds: float) -> Iterator[CutStage]:
    """Set the stage up for twice as many starts of each phase at once, and take it down."""
    (port,) = free_ports(1)
    phases, gate = _phases(seconds, port), Gate()
    profiles = [phase.profile for phase in phases]
    lines = _CONFIGURATION.format(profiles=profiles, scheduler=_SCHEDULER)
    # Each node has one GPU: a node pulls one image after the other.
    size = 2 * alike * len(phases)
    ours = node_group("bound", size, 1, _SCHEDULER)
    fleet = Fleet((node_group("gpu", size, 1, "yes"), ours))
    with staged(folder, NAMESPACE, fleet, lines) as stage, _asked(stage.cluster, gate, folder):
        _make_claim(stage.cluster)
        yield CutStage(stage, gate, phases, tuple(ours.node_names()), port)


@contextmanager
def _asked(cluster: LocalCluster, gate: Gate, folder: Path) -> Iterator[None]:
    """Let the API server ask the gate about each pod that is really created."""
    webhooks = Webhooks(folder)
    webhooks.answers["gate"] = gate.review
    configuration = webhooks.configuration(NAMESPACE, "gate")
    condition = {"name": "real", "expression": "!has(request.dryRun) || !request.dryRun"}
    configuration["webhooks"][0].update(matchConditions=[condition], timeoutSeconds=30)
    try:
        with configured(cluster, configuration):
            yield
    finally:
        gate.open()
        webhooks.stop()


def _make_claim(cluster: LocalCluster) -> None:
    """Make a volume that many pods can have at once, and a claim to it."""
    common = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    volume = {"nfs": {"server": "nfs.example.org", "path": "/"}, "capacity": {"storage": "1Gi"}}
    asked = {"resources": {"requests": {"storage": "1Gi"}}, "volumeName": _CLAIM}
    claims = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
    for path, spec in (("/api/v1/persistentvolumes", volume), (claims, asked)):
        cluster.api.create(path, {"metadata": {"name": _CLAIM}, "spec": {**common, **spec}})
    claim = f"{claims}/{_CLAIM}"
    wait_for(lambda: cluster.api.get(claim)["status"].get("phase") == "Bound")
