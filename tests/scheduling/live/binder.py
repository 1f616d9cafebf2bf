"""Stands in for a provisioner and the volume controllers, so that pods with claims get bound."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from tests.scheduling.generators.claims import BIND_COMPLETED, SELECTED_NODE
from tests.scheduling.live.api import Api, Plain, RefusedError

# The scheduler's message while an ephemeral volume has no claim yet.
WAITING_FOR_CLAIM = "waiting for ephemeral volume controller"


def ephemeral_claims(pod: Plain) -> Iterator[Plain]:
    """Yield the claims that the ephemeral volume controller would create for a pod."""
    metadata = pod["metadata"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
    for volume in pod["spec"].get("volumes", []):
        if "ephemeral" in volume:
            yield {
                "metadata": {
                    "name": f"{metadata['name']}-{volume['name']}",
                    "namespace": metadata["namespace"],
                    "ownerReferences": [owner | {"controller": True}],
                },
                "spec": volume["ephemeral"]["volumeClaimTemplate"]["spec"],
            }


class Binder:
    """Binds WaitForFirstConsumer claims after the scheduler has chosen.

    The scheduler either writes a node into the claim, and a provisioner creates the volume, or it
    reserves an existing volume for the claim. A claim that already names a node when it is created
    has to wait, because its volume must not exist before the scheduler has chosen.
    """

    def __init__(self, api: Api) -> None:
        self.api = api
        self._created_with_node: dict[str, Plain] = {}

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow_claims())
            group.create_task(self._follow_volumes())

    async def provision_the_rest(self) -> None:
        """Provision volumes for the claims that had to wait."""
        while self._created_with_node:
            _, claim = self._created_with_node.popitem()
            await self._provision(claim)

    async def _follow_claims(self) -> None:
        async for change, claim in self.api.events("persistentvolumeclaims"):
            metadata = claim["metadata"]
            if change == "DELETED":
                self._created_with_node.pop(metadata["uid"], None)
            if SELECTED_NODE not in metadata.get("annotations", {}):
                continue
            if change == "ADDED":
                self._created_with_node[metadata["uid"]] = claim
            elif change == "MODIFIED" and self._is_to_be_provisioned(claim):
                await self._provision(claim)

    async def _follow_volumes(self) -> None:
        async for change, volume in self.api.events("persistentvolumes"):
            # Only the scheduler writes the claim's uid; users who reserve a volume don't know it.
            reference = volume["spec"].get("claimRef", {})
            if change == "MODIFIED" and "uid" in reference and volume["status"]["phase"] != "Bound":
                await self._bind(volume, reference)

    def _is_to_be_provisioned(self, claim: Plain) -> bool:
        metadata = claim["metadata"]
        settled = claim["spec"].get("volumeName") or "deletionTimestamp" in metadata
        return not settled and metadata["uid"] not in self._created_with_node

    async def _provision(self, claim: Plain) -> None:
        metadata = claim["metadata"]
        reference = {key: metadata[key] for key in ("namespace", "name", "uid")}
        volume = {
            "metadata": {"name": f"pvc-{metadata['uid']}"},
            "spec": {
                "capacity": claim["spec"]["resources"]["requests"],
                "accessModes": claim["spec"]["accessModes"],
                "storageClassName": claim["spec"]["storageClassName"],
                "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **reference},
                "csi": {"driver": "disk.csi.example.com", "volumeHandle": metadata["uid"]},
            },
        }
        try:
            made = await self.api.create("persistentvolumes", volume)
        except RefusedError as refused:
            if refused.status != 409:
                raise
            return
        await self._bind(made, reference)

    async def _bind(self, volume: Plain, reference: Plain) -> None:
        claim = self.api.path("persistentvolumeclaims", reference["namespace"], reference["name"])
        name = volume["metadata"]["name"]
        try:
            await self.api.patch(
                f"{self.api.path('persistentvolumes', name=name)}/status",
                {"status": {"phase": "Bound"}},
            )
            await self.api.patch(
                claim,
                {
                    "metadata": {"annotations": {BIND_COMPLETED: "yes"}},
                    "spec": {"volumeName": name},
                },
            )
            await self.api.patch(f"{claim}/status", {"status": {"phase": "Bound"}})
        except RefusedError as refused:
            if refused.status != 404:  # the case is over
                raise
