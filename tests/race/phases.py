"""The phases of a start in which it is cut, and pods that stay in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Pod = dict[str, Any]

GPU = "nvidia.com/gpu"
SCHEDULER = "bound-by-the-test"
"""A scheduler that doesn't run, so that its pods wait until the test binds them."""
CLAIM = "files"


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
    is_reached: Callable[[Pod], bool]
    faults: dict[str, str] = field(default_factory=dict)
    overrides: dict[str, Any] = field(default_factory=dict)

    def profile(self, port: int) -> dict[str, Any]:
        """Return the profile whose servers stay in the phase; *port* is where they listen."""
        gpu: dict[str, Any] = {
            "extra_resource_limits": {GPU: "1"},
            "node_selector": {"gpu": "yes"},
            "extra_annotations": {f"localcluster/{key}": it for key, it in self.faults.items()},
            "port": port,
            **self.overrides,
        }
        return {"slug": self.name, "display_name": self.name, "kubespawner_override": gpu}


def _is_bound(pod: Pod) -> bool:
    return bool(pod["spec"].get("nodeName"))


def _is_prepared(pod: Pod) -> bool:
    """Whether the kubelet waits for volumes."""
    status = pod["status"]
    return _is_bound(pod) and "startTime" in status and not status.get("podIP")


def _waits_for_containers(pod: Pod) -> bool:
    return bool(pod["status"].get("podIP")) and not _runs(pod)


def _runs(pod: Pod) -> bool:
    return bool(pod["status"].get("phase") == "Running")


def phases(seconds: float) -> tuple[Phase, ...]:
    """Return all phases; where the test can't end one, it lasts so many seconds."""
    long = f"{seconds:g}"
    volume = {"name": CLAIM, "persistentVolumeClaim": {"claimName": CLAIM}}
    # The scheduler that runs may not take the node that the test chooses.
    bound_later = {"scheduler_name": SCHEDULER, "node_selector": {"gpu": SCHEDULER}}
    return (
        # A webhook holds the request, so there is no pod yet.
        Phase("sending", lambda _pod: False),
        Phase("scheduling", lambda pod: not _is_bound(pod), {}, bound_later),
        Phase("attaching", _is_prepared, {"attach-seconds": long}, {"volumes": [volume]}),
        Phase("pulling", _waits_for_containers, {"pull-seconds": long}),
        Phase("starting", _waits_for_containers, {"start-after": long}),
        Phase("listening", _runs, {}, {"http_timeout": 60}),
    )
