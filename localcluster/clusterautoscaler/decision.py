"""What to do about the pods that wait for a node. No input or output."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from localcluster.client import Object
from localcluster.clusterautoscaler.groups import Group
from localcluster.clusterautoscaler.packing import Others, Packing
from localcluster.nodes import node_object

#: The real one leaves pods with a lower priority waiting (--expendable-pods-priority-cutoff).
_LOWEST_PRIORITY = -10


@dataclass(frozen=True)
class Growth:
    """A group that gets more nodes, and the pods that have room there."""

    group: Group
    count: int
    pods: tuple[Object, ...]

    def __str__(self) -> str:
        target = self.group.target
        maximum = self.group.scaling.max_size
        return f"{{{self.group.name} {target}->{target + self.count} (max: {maximum})}}"


@dataclass(frozen=True)
class Decision:
    """The group to grow, if any; without one, why it doesn't help each pod."""

    growth: Growth | None = None
    reasons: list[tuple[Object, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Cluster:
    """What the API server has."""

    nodes: Sequence[Object]
    pods: Sequence[Object]
    others: Others


def decide(cluster: Cluster, groups: Sequence[Group], now: float) -> Decision:
    """Return what to do: as the real one, change at most one group at a time.

    Among the groups that help most pods it takes the first of the fleet.
    """
    waiting = sorted(filter(_waits, cluster.pods), key=_priority, reverse=True)
    present = _present(cluster, groups, now)
    pods = [pod for pod in waiting if not present.place(pod)]
    if not pods:
        return Decision()
    skipped = {group.name: reason for group in groups if (reason := _why_skipped(group, now))}
    refused: dict[str, Counter[str]] = {_uid(pod): Counter(skipped.values()) for pod in pods}
    growths = []
    for group in groups:
        if group.name not in skipped:
            helped = list(_helped(present, group, pods, refused))
            if helped:
                growths.append(_growth(present, group, helped, now))
    if growths:
        return Decision(max(growths, key=lambda growth: len(growth.pods)))
    return Decision(reasons=[(pod, _told(refused[_uid(pod)])) for pod in pods])


def _present(cluster: Cluster, groups: Sequence[Group], now: float) -> Packing:
    """Return the nodes as they are, with those on their way as if they were complete."""
    starting = {
        node["metadata"]["name"]
        for group in groups
        if group.upcoming(now)
        for node in group.starting()
    }
    nodes = [node for node in cluster.nodes if node["metadata"]["name"] not in starting]
    nodes += [template for group in groups for template in _templates(group, group.upcoming(now))]
    return Packing(nodes, cluster.pods, cluster.others)


def _templates(group: Group, count: int) -> Iterator[Object]:
    return (node_object(f"template-{group.name}-{i}", group.shape) for i in range(count))


def _why_skipped(group: Group, now: float) -> str:
    if now < group.backoff.until:
        return "in backoff after failed scale-up"
    return "" if group.room else "max node group size reached"


def _helped(
    present: Packing, group: Group, pods: Sequence[Object], refused: Mapping[str, Counter[str]]
) -> Iterator[Object]:
    """Yield the pods that fit on a new node of a group; count why the others don't."""
    packing = present.copy()
    template = node_object(f"template-{group.name}", group.shape)
    packing.add(template)
    for pod in pods:
        if reasons := packing.reasons(pod, template["metadata"]["name"]):
            refused[_uid(pod)].update(reasons)
        else:
            yield pod


def _growth(present: Packing, group: Group, pods: Sequence[Object], now: float) -> Growth:
    """Pack pods on new nodes, as many as the group may have."""
    packing = present.copy()
    templates = _templates(group, group.upcoming(now) + group.room)
    new = list(templates)[group.upcoming(now) :]
    count, placed = 0, []
    for pod in pods:
        if packing.place(pod):
            placed.append(pod)
        elif count < len(new):
            packing.add(new[count])
            count += 1
            placed += [pod] if packing.place(pod) else []
    return Growth(group, count, tuple(placed))


def _waits(pod: Object) -> bool:
    """Return whether the scheduler has found no node for a pod that counts."""
    if pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"]:
        return False
    if _priority(pod) < _LOWEST_PRIORITY or pod["status"].get("nominatedNodeName"):
        return False
    return any(
        condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable"
        for condition in pod["status"].get("conditions", [])
    )


def _priority(pod: Object) -> int:
    return int(pod["spec"].get("priority", 0))


def _uid(pod: Object) -> str:
    return str(pod["metadata"]["uid"])


def _told(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in reasons.items())
