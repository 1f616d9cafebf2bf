"""Adds an accelerator's volumes and shared memory to a pod."""

from collections.abc import Mapping
from typing import Any

from gpuspawner.manifest.errors import ManifestError
from gpuspawner.offers import Accelerator
from gpuspawner.offers.frozen import thaw
from gpuspawner.policy import Grant

SHARED_MEMORY = "gpuspawner-shared-memory"
"""Name of the volume at `DEV_SHM`."""

DEV_SHM = "/dev/shm"  # noqa: S108


def add_volumes(spec: dict[str, Any], accelerator: Accelerator) -> None:
    """Add the accelerator's volumes to the pod and its mounts to the server's container.

    Raises:
        ManifestError: The pod already uses the volume's name or the path, or a mount has no volume.
    """
    for volume in accelerator.volumes:
        _add_volume(spec, thaw(volume), accelerator)
    for mount in accelerator.volume_mounts:
        _add_mount(spec, thaw(mount), accelerator)


def add_shared_memory(spec: dict[str, Any], grant: Grant) -> None:
    """Give the server a /dev/shm of the size that the accelerator sets.

    Data in /dev/shm counts as memory of the container that wrote it. So it needs no extra memory
    request, and its size is never above the server's memory. If the administrator set no size, a
    volume that is already mounted there stays.

    Raises:
        ManifestError: Something else is mounted there.
    """
    accelerator = grant.accelerator
    if accelerator is None or accelerator.shared_memory is None:
        return
    if accelerator.discovered and _mounts_at(spec, DEV_SHM):
        return
    size = min(accelerator.shared_memory, grant.memory or accelerator.shared_memory)
    volume = {"name": SHARED_MEMORY, "emptyDir": {"medium": "Memory", "sizeLimit": str(size)}}
    _add_volume(spec, volume, accelerator)
    _add_mount(spec, {"name": SHARED_MEMORY, "mountPath": DEV_SHM}, accelerator)


def _add_volume(spec: dict[str, Any], volume: Any, accelerator: Accelerator) -> None:
    volumes = spec["volumes"] = list(spec.get("volumes") or ())
    same = [other for other in volumes if other["name"] == volume["name"]]
    if not same:
        volumes.append(volume)
    elif same != [volume]:
        reason = f"the pod has another volume named {volume['name']!r}"
        raise ManifestError(accelerator.key, reason)


def _add_mount(spec: dict[str, Any], mount: Any, accelerator: Accelerator) -> None:
    server = spec["containers"][0]
    mounts = server["volumeMounts"] = list(server.get("volumeMounts") or ())
    if not any(volume["name"] == mount["name"] for volume in spec.get("volumes") or ()):
        reason = f"volume_mounts names {mount['name']!r}, but the pod has no such volume"
        raise ManifestError(accelerator.key, reason)
    same = _mounts_at(spec, mount["mountPath"])
    if not same:
        mounts.append(mount)
    elif same != [mount]:
        reason = (
            f"something else is mounted at {mount['mountPath']} "
            f"(the volume {same[0]['name']!r} of KubeSpawner's configuration)"
        )
        raise ManifestError(accelerator.key, reason)


def _mounts_at(spec: Mapping[str, Any], path: str) -> list[Any]:
    mounts = spec["containers"][0].get("volumeMounts") or ()
    return [mount for mount in mounts if mount["mountPath"].rstrip("/") == path.rstrip("/")]
