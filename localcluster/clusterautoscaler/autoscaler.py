"""Acts on one cluster: asks the played cloud for nodes, and tells what it does."""

import logging
from collections.abc import Iterable

from localcluster.client import ApiError, Client, Object
from localcluster.clusterautoscaler.decision import Cluster, Growth, decide
from localcluster.clusterautoscaler.events import Events
from localcluster.clusterautoscaler.groups import Backoff, Group
from localcluster.clusterautoscaler.idle import IdleNodes
from localcluster.clusterautoscaler.settings import ClusterAutoscaler
from localcluster.clusterautoscaler.status import (
    Counts,
    Report,
    go_time,
    group_status,
    initializing,
)
from localcluster.fleet import NodeGroup
from localcluster.nodes import starting_node

log = logging.getLogger(__name__)

#: The ConfigMap of the status, as the real one names it.
STATUS_NAME = "cluster-autoscaler-status"
_UPDATED = "cluster-autoscaler.kubernetes.io/last-updated"
_CONFIG_MAPS = "/api/v1/namespaces/kube-system/configmaps"
STATUS_PATH = f"{_CONFIG_MAPS}/{STATUS_NAME}"
_NODES = "/api/v1/nodes"

_OTHERS = {
    "namespaces": "/api/v1/namespaces",
    "persistentVolumeClaims": "/api/v1/persistentvolumeclaims",
    "persistentVolumes": "/api/v1/persistentvolumes",
    "storageClasses": "/apis/storage.k8s.io/v1/storageclasses",
    "csiNodes": "/apis/storage.k8s.io/v1/csinodes",
    "csiDrivers": "/apis/storage.k8s.io/v1/csidrivers",
    "csiStorageCapacities": "/apis/storage.k8s.io/v1/csistoragecapacities",
    "volumeAttachments": "/apis/storage.k8s.io/v1/volumeattachments",
    "deviceClasses": "/apis/resource.k8s.io/v1/deviceclasses",
    "priorityClasses": "/apis/scheduling.k8s.io/v1/priorityclasses",
}


class Autoscaler:
    """Scales the groups that have `Scaling`."""

    def __init__(
        self, api: Client, groups: Iterable[NodeGroup], settings: ClusterAutoscaler
    ) -> None:
        self._api = api
        self._settings = settings
        self._events = Events(api)
        self._report = Report()
        self._idle = IdleNodes(api, settings.scale_down_seconds)
        self._groups = [
            Group(shape, shape.scaling, _backoff(settings)) for shape in groups if shape.scaling
        ]

    def start(self, now: float) -> None:
        """Write the first status."""
        self._write_status(initializing(now), now)

    def run_cloud(self, now: float) -> None:
        """Let the machines become nodes, or be refused, whose time has come."""
        for group in self._groups:
            for machine in group.due(now):
                self._register(group, machine.name)
            if refused := group.take_refused(now):
                scaling = group.scaling
                message = (
                    f"Failed adding {len(refused)} nodes to group {group.name} due to "
                    f"OutOfResource.{scaling.error_code}; source errors: {scaling.error_message}"
                )
                log.warning(message)
                self._events.about_status(self._status(), "ScaleUpFailed", message, "Warning")

    def scan(self, now: float) -> None:
        """Look at the cluster, act, and write the status."""
        cluster = self._read()
        for group in self._groups:
            group.see(cluster.nodes)
        decision = decide(cluster, self._groups, now)
        if decision.growth:
            self._grow(decision.growth, now)
        for pod, reasons in decision.reasons:
            message = f"pod didn't trigger scale-up: {reasons}"
            self._events.about_pod(pod, "NotTriggerScaleUp", message, now)
        idle = self._idle.remove(self._groups, cluster.pods, now)
        self._tell(cluster.nodes, idle, now)

    def _read(self) -> Cluster:
        return Cluster(
            nodes=self._api.items(_NODES),
            pods=self._api.items(
                "/api/v1/pods?fieldSelector=status.phase!=Succeeded,status.phase!=Failed"
            ),
            others={name: self._api.items(path) for name, path in _OTHERS.items()},
        )

    def _grow(self, growth: Growth, now: float) -> None:
        group, told = growth.group, str(growth)
        old, new = group.target, group.target + growth.count
        group.request(growth.count, now)
        log.info("scale-up: %s", told)
        sizes = f"{new} instead of {old} (max: {group.scaling.max_size})"
        message = f"Scale-up: group {group.name} size set to {sizes}"
        self._events.about_status(self._status(), "ScaledUpGroup", message, "Normal")
        for pod in growth.pods:
            triggered = f"pod triggered scale-up: [{told}]"
            self._events.about_pod(pod, "TriggeredScaleUp", triggered, now)

    def _register(self, group: Group, name: str) -> None:
        node = starting_node(name, group.shape, group.scaling.device_seconds)
        try:
            created = self._api.create(_NODES, node)
        except ApiError as error:
            # An earlier answer may have been lost.
            if error.status != 409:
                raise
            created = self._api.get(f"{_NODES}/{name}")
        group.see([*group.nodes, created])

    def _tell(self, nodes: Iterable[Object], idle: dict[str, int], now: float) -> None:
        groups = [group_status(group, idle.get(group.name, 0), now) for group in self._groups]
        starting = sum(len(group.starting()) for group in self._groups)
        machines = sum(len(group.machines) for group in self._groups)
        cluster = Counts(len(list(nodes)) - starting, starting, machines)
        self._write_status(self._report.yaml(groups, cluster, now), now)

    def _status(self) -> Object:
        return self._api.get(STATUS_PATH)

    def _write_status(self, status: str, now: float) -> None:
        metadata = {"name": STATUS_NAME, "annotations": {_UPDATED: go_time(now)}}
        config_map = {"metadata": metadata, "data": {"status": status}}
        try:
            self._api.patch(STATUS_PATH, config_map)
        except ApiError as error:
            if error.status != 404:
                raise
            self._api.create(_CONFIG_MAPS, config_map)


def _backoff(settings: ClusterAutoscaler) -> Backoff:
    return Backoff(settings.backoff_seconds, settings.longest_backoff_seconds)
