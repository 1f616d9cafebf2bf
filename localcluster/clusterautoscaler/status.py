"""The autoscaler's status for its ConfigMap: as YAML since version 1.30."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import yaml

from localcluster.client import Object
from localcluster.clusterautoscaler.groups import Group


@dataclass(frozen=True)
class Counts:
    """The nodes of a group or of the cluster, by their state."""

    ready: int
    not_started: int
    unregistered: int

    @property
    def registered(self) -> int:
        """How many are nodes of the cluster."""
        return self.ready + self.not_started


@dataclass(frozen=True)
class GroupStatus:
    """One group at one moment."""

    name: str
    counts: Counts
    target: int
    min_size: int
    max_size: int
    scale_up: str
    error_code: str
    error_message: str
    idle: int


def group_status(group: Group, idle: int, now: float) -> GroupStatus:
    """Return the state of a group; ``idle`` is how many nodes may be removed."""
    counts = Counts(len(group.ready()), len(group.starting()), len(group.machines))
    is_in_backoff = now < group.backoff.until
    scale_up = "Backoff" if is_in_backoff else "NoActivity"
    return GroupStatus(
        name=group.name,
        counts=counts,
        target=group.target,
        min_size=group.scaling.min_size,
        max_size=group.scaling.max_size,
        scale_up="InProgress" if group.is_growing else scale_up,
        error_code=group.scaling.error_code if is_in_backoff else "",
        error_message=group.scaling.error_message if is_in_backoff else "",
        idle=idle,
    )


class Report:
    """Writes the status, and remembers since when each part is as it is."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, str], tuple[str, float]] = {}

    def yaml(self, groups: Sequence[GroupStatus], cluster: Counts, now: float) -> str:
        """Return the status as versions since 1.30 write it."""
        wide: Object = {
            "health": {"status": "Healthy", "nodeCounts": _node_counts(cluster)},
            "scaleUp": {"status": _scale_up(groups)},
            "scaleDown": _scale_down(sum(group.idle for group in groups)),
        }
        self._stamp("", wide, now)
        status = {
            "time": go_time(now),
            "autoscalerStatus": "Running",
            "clusterWide": wide,
            "nodeGroups": [self._group(group, now) for group in groups],
        }
        return str(yaml.safe_dump(status, sort_keys=False))

    def _group(self, group: GroupStatus, now: float) -> Object:
        up: Object = {"status": group.scale_up}
        if group.scale_up == "Backoff":
            code, message = group.error_code, group.error_message
            up["backoffInfo"] = {"errorCode": code, "errorMessage": message}
        parts: Object = {
            "health": {
                "status": "Healthy",
                "nodeCounts": _node_counts(group.counts),
                "cloudProviderTarget": group.target,
                "minSize": group.min_size,
                "maxSize": group.max_size,
            },
            "scaleUp": up,
            "scaleDown": _scale_down(group.idle),
        }
        self._stamp(group.name, parts, now)
        return {"name": group.name, **parts}

    def _stamp(self, name: str, parts: Object, now: float) -> None:
        for part, condition in parts.items():
            since = self._known_since(name, part, condition["status"], now)
            condition["lastProbeTime"] = _json_time(now)
            condition["lastTransitionTime"] = _json_time(since)

    def _known_since(self, name: str, part: str, status: str, now: float) -> float:
        before, since = self._since.get((name, part), ("", now))
        since = since if before == status else now
        self._since[name, part] = (status, since)
        return since


def initializing(now: float) -> str:
    """Return the status as YAML before the first scan."""
    status = {"time": go_time(now), "autoscalerStatus": "Initializing"}
    return str(yaml.safe_dump(status, sort_keys=False))


def go_time(now: float) -> str:
    """Return a time as Go prints it."""
    nanoseconds = f"{now % 1:.9f}"[1:].rstrip("0").rstrip(".")
    return f"{datetime.fromtimestamp(int(now), UTC):%Y-%m-%d %H:%M:%S}{nanoseconds} +0000 UTC"


def _json_time(now: float) -> str:
    return f"{datetime.fromtimestamp(now, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def _scale_up(groups: Sequence[GroupStatus]) -> str:
    is_growing = any(group.scale_up == "InProgress" for group in groups)
    return "InProgress" if is_growing else "NoActivity"


def _candidates(idle: int) -> str:
    return "CandidatesPresent" if idle else "NoCandidates"


def _scale_down(idle: int) -> Object:
    candidates = {"candidates": idle} if idle else {}
    return {"status": _candidates(idle), **candidates}


def _node_counts(counts: Counts) -> Object:
    return {
        "registered": {
            "total": counts.registered,
            "ready": counts.ready,
            "notStarted": counts.not_started,
        },
        "longUnregistered": 0,
        "unregistered": counts.unregistered,
    }
