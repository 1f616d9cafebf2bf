"""Device plugins that start some seconds after their node, which has no devices before."""

import asyncio
import json
from collections.abc import Mapping

from localcluster.agent.api import Api, ApiError, Object
from localcluster.nodes import DEVICES, DEVICES_AFTER, is_device


async def hold_back(api: Api, node: Object) -> dict[str, str]:
    """Return the devices that a new node reports later; take those away that it has already."""
    annotations = node["metadata"].get("annotations", {})
    if DEVICES_AFTER not in annotations:
        return {}
    capacity = node["status"].get("capacity", {})
    early = {name: count for name, count in capacity.items() if is_device(name, count)}
    if early:
        await _report(api, node, dict.fromkeys(early))
    return {**json.loads(annotations.get(DEVICES, "{}")), **early}


async def report_later(api: Api, node: Object, devices: Mapping[str, str]) -> None:
    """Give a node its devices after the seconds of its annotation."""
    await asyncio.sleep(float(node["metadata"]["annotations"][DEVICES_AFTER]))
    await _report(api, node, devices)


async def _report(api: Api, node: Object, devices: Mapping[str, str | None]) -> None:
    path = f"/api/v1/nodes/{node['metadata']['name']}/status"
    try:
        await api.patch(path, {"status": {"capacity": devices, "allocatable": devices}})
    except ApiError as error:
        # The node may be gone.
        if error.status != 404:
            raise
