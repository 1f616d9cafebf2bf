"""Adds to a pod an init container that compares the GPUs that it sees with those granted.

The kubelet gives the server's container the devices that an init container has had
(`devicesToReuse` in ``pkg/kubelet/cm/devicemanager/manager.go``, v1.36), and a pod requests as much
as its largest init container, or all its containers together. So the check sees the server's own
GPUs, and takes none of its own.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from importlib.resources import files
from typing import Any

from gpuspawner.kube.quantity import QuantityError, parse_quantity
from gpuspawner.offers.manifest import server_limits
from gpuspawner.offers.visible_gpus import CONTAINER, FEWER
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.scheduling.state import ClusterState

PRODUCT = "nvidia.com/gpu.product"
"""The node label that names a GPU's model as NVML does."""

# Other resources of NVIDIA's may be network devices.
_GPUS = re.compile(r"nvidia\.com/(?:gpu|mig-[^/]+?)(?:\.shared)?")

_PROGRAM = files("gpuspawner.offers").joinpath("visible_gpus.py").read_text(encoding="utf-8")
_SCRIPT = f"""
command -v python3 >/dev/null || {{ echo 'gpuspawner: no python3, so nobody checks'; exit 0; }}
python3 -I -c "$0" "$@"
[ $? = {FEWER} ] && exit {FEWER}
exit 0
"""
_OF_SERVERS = frozenset({
    "args", "lifecycle", "livenessProbe", "ports", "readinessProbe", "resizePolicy",
    "restartPolicy", "restartPolicyRules", "startupProbe", "stdin", "stdinOnce", "tty",
})  # fmt: skip
"""The fields of a server that a check lacks; Kubernetes forbids some in init containers."""


def gpus(pod: Mapping[str, Any]) -> dict[str, int]:
    """Return the NVIDIA GPUs and MIG slices that a pod's server gets, by resource."""
    limits = server_limits(pod)
    found = {name: _whole(limits[name]) for name in limits if _GPUS.fullmatch(name)}
    return {name: count for name, count in found.items() if count}


def _whole(quantity: object) -> int:
    try:
        return int(parse_quantity(str(quantity)))
    except QuantityError:
        return 0  # the API server refuses the pod


def with_gpu_check(pod: Mapping[str, Any], shared: Collection[str] = ()) -> dict[str, Any]:
    """Return a pod whose server starts only if it sees its GPUs; a pod without any as it is.

    Args:
        pod: Its first container is the server's.
        shared: The resources that may count one GPU several times.
    """
    spec, granted = pod["spec"], gpus(pod)
    if not granted:
        return dict(pod)
    others = [it for it in spec.get("initContainers") or () if it["name"] != CONTAINER]
    check = _check(spec, granted, shared)
    return {**pod, "spec": {**spec, "initContainers": [*others, check]}}


def _check(
    spec: Mapping[str, Any], granted: Mapping[str, int], shared: Collection[str]
) -> dict[str, Any]:
    """Return the server's container with another program: what it sees, the server will see."""
    alike = {key: it for key, it in spec["containers"][0].items() if key not in _OF_SERVERS}
    one = {it for it in granted if it in shared or it.endswith(".shared")}  # GPU may be enough
    least = sum(1 if name in one else count for name, count in granted.items())
    model = (spec.get("nodeSelector") or {}).get(PRODUCT, "")
    asked = [str(sum(granted.values())), str(least), model]
    return {
        **alike,
        "name": CONTAINER,
        "command": ["sh", "-c", _SCRIPT, _PROGRAM, *asked],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def shared_gpus(state: ClusterState, pod: Mapping[str, Any]) -> Iterator[str]:
    """Yield the resources that may count one GPU several times; all if the hub sees no nodes.

    GPU Feature Discovery labels a node with the shares of each GPU.
    """
    selector = (pod["spec"].get("nodeSelector") or {}).items()
    nodes = [it for it in state.nodes.values() if selector <= it.labels.items()]
    for resource in gpus(pod):
        if not nodes or any(_shares(it, resource) for it in nodes):
            yield resource


def _shares(node: NodeInfo, resource: str) -> bool:
    return node.labels.get(f"{resource}.replicas", "0") not in ("0", "1")
