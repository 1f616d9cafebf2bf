"""Keeping nodes Ready, as their kubelets would."""

import asyncio
import logging
from datetime import UTC, datetime

from localcluster.agent import device_plugin
from localcluster.agent.api import STRATEGIC, Api, ApiError, ChangeKind, Object
from localcluster.agent.node_states import NodeStates
from localcluster.agent.pressure import PRESSURES, shortages
from localcluster.nodes import KEPT, NOT_READY_TAINT, SILENT, UNREGISTERED_TAINT

log = logging.getLogger(__name__)

#: A kubelet's own figures: it renews every 10 s; after 50 s without, the node is Unknown.
_RENEW_EVERY = 10.0
_LEASE_SECONDS = 40
#: How long one of Karpenter's nodes takes from its registration until it is Ready, in seconds.
_REGISTERED_BEFORE = 2.0
_LOOK_EVERY = 0.2
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


def is_kept(node: Object) -> bool:
    """Return whether the node is the agent's and isn't set to die."""
    annotations = node["metadata"].get("annotations", {})
    return bool(annotations.get(KEPT) == "true" and annotations.get(SILENT) != "true")


def is_registered(node: Object) -> bool:
    """Return whether Karpenter has registered the node, if it is Karpenter's."""
    taints = node["spec"].get("taints", [])
    return all(taint["key"] != UNREGISTERED_TAINT for taint in taints)


async def keep_nodes(api: Api, states: NodeStates) -> None:
    """Keep every node with the agent's annotation Ready, forever."""
    work: dict[str, list[asyncio.Task[None]]] = {}
    registering: set[str] = set()
    health = device_plugin.Health(api)
    async with asyncio.TaskGroup() as tasks:
        async for change in api.follow("/api/v1/nodes", {}):
            node = change.object
            await states.see(change)
            name = node["metadata"]["name"]
            if change.kind is ChangeKind.GONE or not is_kept(node):
                for task in work.pop(name, []):
                    task.cancel()
                continue
            if name not in work:
                work[name] = [tasks.create_task(_renew(api, node))]
                if devices := await device_plugin.hold_back(api, node):
                    reporting = device_plugin.report_later(api, node, devices)
                    work[name].append(tasks.create_task(reporting))
            if not is_registered(node) and name not in registering:
                registering.add(name)
                readying = _make_ready_once_registered(api, name, registering)
                work[name].append(tasks.create_task(readying))
            if name not in registering:
                await _make_ready(api, node)
            await health.report(node)
            await _report_pressures(api, node)


async def _make_ready_once_registered(api: Api, name: str, registering: set[str]) -> None:
    """Make one of Karpenter's nodes Ready some time after Karpenter has registered it.

    A real node takes seconds, too. If both came at once, the controller that evicts pods by taints
    could see a new pod on the node before it sees that the taint has gone.
    """
    path = f"/api/v1/nodes/{name}"
    try:
        # Without this condition, the controllers would remove the taint of a node that isn't Ready.
        await _report(api, path, _condition("Ready", "False", "KubeletNotReady"))
        while not is_registered(await api.get(path)):  # noqa: ASYNC110, it is only a simulation
            await asyncio.sleep(_LOOK_EVERY)
        await asyncio.sleep(_REGISTERED_BEFORE)
        await _make_ready(api, await api.get(path))
    except ApiError as error:
        log.warning("node %s: %s", name, error)
    finally:
        registering.discard(name)


async def _make_ready(api: Api, node: Object) -> None:
    """Set the node Ready and remove its not-ready taints: the agent runs, so the node is."""
    path = f"/api/v1/nodes/{node['metadata']['name']}"
    ready = [c for c in node["status"].get("conditions", []) if c["type"] == "Ready"]
    taints = node["spec"].get("taints", [])
    others = [taint for taint in taints if taint["key"] != NOT_READY_TAINT]
    try:
        if not ready or ready[0]["status"] != "True":
            await _report(api, path, _condition("Ready", "True", "KubeletReady"))
        if len(others) < len(taints):
            version = {"resourceVersion": node["metadata"]["resourceVersion"]}
            await api.patch(path, {"metadata": version, "spec": {"taints": others}})
    except ApiError as error:
        # Another client changed the node; the watch will bring that change.
        if error.status not in (404, 409):
            raise


async def _report_pressures(api: Api, node: Object) -> None:
    """Say what a node is short of, and what it is no longer short of."""
    conditions = node["status"].get("conditions", [])
    said = {c["type"] for c in conditions if c["status"] == "True"}
    short = {shortage.pressure for shortage in shortages(node)}
    for pressure in PRESSURES:
        is_low = pressure in short
        if is_low == (pressure.condition in said):
            continue
        reason, message = pressure.when_low if is_low else pressure.when_well
        condition = _condition(pressure.condition, "True" if is_low else "False", reason)
        try:
            path = f"/api/v1/nodes/{node['metadata']['name']}"
            await _report(api, path, condition | {"message": message})
        except ApiError as error:
            if error.status not in (404, 409):
                raise


def _condition(kind: str, status: str, reason: str) -> Object:
    times = {"lastHeartbeatTime": _now(), "lastTransitionTime": _now()}
    return {"type": kind, "status": status, "reason": reason, **times}


async def _report(api: Api, path: str, condition: Object) -> None:
    await api.patch(f"{path}/status", {"status": {"conditions": [condition]}}, STRATEGIC)


async def _renew(api: Api, node: Object) -> None:
    metadata = node["metadata"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": metadata["name"], "uid": metadata["uid"]}
    lease = {
        "metadata": {"name": metadata["name"], "ownerReferences": [owner]},
        "spec": {"holderIdentity": metadata["name"], "leaseDurationSeconds": _LEASE_SECONDS},
    }
    while True:
        renewed = {"spec": {"renewTime": _now(microseconds=True)}}
        try:
            await api.patch(f"{_LEASES}/{metadata['name']}", renewed)
        except ApiError as error:
            if error.status == 404:
                lease["spec"] |= renewed["spec"]
                await _create(api, lease)
            else:
                log.warning("lease of %s: %s", metadata["name"], error)
        await asyncio.sleep(_RENEW_EVERY)


async def _create(api: Api, lease: Object) -> None:
    try:
        await api.create(_LEASES, lease)
    except ApiError as error:
        log.warning("lease of %s: %s", lease["metadata"]["name"], error)


def _now(*, microseconds: bool = False) -> str:
    form = "%Y-%m-%dT%H:%M:%S.%fZ" if microseconds else "%Y-%m-%dT%H:%M:%SZ"
    return datetime.now(UTC).strftime(form)
