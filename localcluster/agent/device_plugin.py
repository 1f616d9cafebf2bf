"""Device plugins: those that start some seconds after their node, and devices that get sick."""

import asyncio
import json
from collections.abc import Mapping

from localcluster.agent.api import Api, ApiError, Object
from localcluster.nodes import DEVICES, DEVICES_AFTER, UNHEALTHY_DEVICES, amounts, is_device


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


class Health:
    """Takes devices that a node's annotation calls unhealthy out of what is allocatable."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._sick: dict[str, set[str]] = {}

    async def report(self, node: Object) -> None:
        """Change what is allocatable on a node; its capacity still has the sick devices."""
        name, status = node["metadata"]["name"], node["status"]
        sick = amounts(node, UNHEALTHY_DEVICES)
        # What is no longer sick is allocatable again; other resources are not the plugin's.
        ours = self._sick.get(name, set()) | sick.keys()
        self._sick[name] = set(sick)
        has = {resource: int(status["capacity"].get(resource, "0")) for resource in ours}
        healthy = {key: str(max(0, number - sick.get(key, 0))) for key, number in has.items()}
        if any(status["allocatable"].get(key) != number for key, number in healthy.items()):
            await _patch(self._api, node, {"allocatable": healthy})


async def _report(api: Api, node: Object, devices: Mapping[str, str | None]) -> None:
    await _patch(api, node, {"capacity": devices, "allocatable": devices})


async def _patch(api: Api, node: Object, status: Object) -> None:
    path = f"/api/v1/nodes/{node['metadata']['name']}/status"
    try:
        await api.patch(path, {"status": status})
    except ApiError as error:
        # The node may be gone.
        if error.status != 404:
            raise
