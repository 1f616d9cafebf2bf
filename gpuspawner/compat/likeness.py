"""Tell from spawners' settings whether their pods are alike, without making the pods.

KubeSpawner takes about half a millisecond for a pod. It makes the pod of some traits, into which it
writes the owner's name (``get_pod_manifest``, ``get_pvc_manifest`` and ``_expand_all`` in
``kubespawner/spawner.py`` of 7.0.0 and 7.1.0). So if these traits are equal, two pods are, too, but
for names. The traits are read from KubeSpawner's code, so that one more of a later version counts.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec
from kubespawner import KubeSpawner
from msgspec import msgpack

from gpuspawner.compat.code import names_used
from gpuspawner.compat.kubespawner import others_have

_READING = ("get_pod_manifest", "get_pvc_manifest", "_build_pod_labels", "_build_common_labels")
"""The methods whose traits make a pod, and the claim of its home directory."""
_MAKING = (*_READING, "_expand_all", "_expand_user_properties", "_sorted_dict_values")
_ALSO = ("slug_scheme", "storage_pvc_ensure", "kueue_queue", "kueue_priority_class")
"""More traits that decide: the names, the claim, and the queue of the pod."""

_NO_SCHEDULER_READS = frozenset({
    "allow_privilege_escalation", "automount_service_account_token", "cmd",
    "container_security_context", "extra_annotations", "fs_gid", "gid", "image_pull_secrets",
    "lifecycle_hooks", "log", "pod_security_context", "privileged", "secret_mount_path",
    "service_account", "storage_extra_annotations", "storage_extra_labels", "supplemental_gids",
    "uid", "user", "volume_mounts", "working_dir",
})  # fmt: skip
"""Some of them may differ from user to user, and it doesn't matter. One that is a function may fail
for one user alone, or set others."""

_LABELS = ("common_labels", "extra_labels")
_BRACE = "{"
_NAME = _BRACE.encode()
"""Where braces are, KubeSpawner may write a name of the owner's."""
_CLAIM = "persistentVolumeClaim"

_encode = msgpack.Encoder().encode


class Likeness(msgspec.Struct, frozen=True):
    """What one server's pods have in common with others'; equal keys are of like pods.

    Attributes:
        settings: What KubeSpawner makes them of.
        namespace: Where they are; each user may have one of their own.
        owner: The names that KubeSpawner writes into them.
        has_names: Whether they may be in more than in the pods' names, labels and claims.
        has_claims: Whether they may be in claims.
    """

    settings: bytes
    namespace: str
    owner: tuple[object, ...]
    has_names: bool
    has_claims: bool

    @property
    def but_for_claims(self) -> object:
        """The key of pods that differ only by their names, labels and claims."""
        return self.settings, self.namespace, self.owner if self.has_names else ()

    @property
    def but_for_names(self) -> object:
        """The key of pods that differ only by their names and labels."""
        has_names = self.has_names or self.has_claims
        return self.settings, self.namespace, self.owner if has_names else ()

    @property
    def alone(self) -> object:
        """The key of one server's pods."""
        return self.settings, self.namespace, self.owner


def likeness(spawner: Any) -> Likeness | None:
    """Return what a server's pods are like, as far as a scheduler reads them.

    None if nobody can tell: a class of others makes them, or a setting is a function. Or a class
    can't tell its default of a setting yet, because a hook or its own ``start`` finds it out.
    """
    if others_have(spawner, _MAKING):
        return None
    unread = (getattr(spawner, name, None) for name in _NO_SCHEDULER_READS)
    try:
        claims, volumes = _split(spawner.volumes)
        settings = _encode([volumes, _mounts(spawner.volume_mounts), *_values(spawner)])
        labels = _encode([getattr(spawner, name) for name in _LABELS])
        named = _encode(claims)
        has_names = _NAME in settings or any(map(callable, unread))
    except Exception:  # noqa: BLE001, or a function, or what no pod can have: the start says why
        return None
    return Likeness(
        b"\0".join((settings, labels, named)),
        spawner.namespace,
        (spawner.user.name, spawner.user.id, spawner.name, spawner.pod_name, spawner.pvc_name),
        has_names=has_names,
        has_claims=_NAME in named or spawner.storage_pvc_ensure,
    )


def _values(spawner: Any) -> list[object]:
    """Return the settings of a server's pods; a default that nobody has read yet is read now."""
    values = spawner._trait_values  # their descriptors take as long as all the rest
    return [values[it] if it in values else getattr(spawner, it, None) for it in _traits()]


def _split(volumes: Any) -> tuple[list[object], list[object]]:
    """Split volumes into those with a claim and others, whose names mean nothing."""
    listed = volumes.items() if isinstance(volumes, Mapping) else enumerate(volumes)
    claims: list[object] = []
    others: list[object] = []
    for key, volume in listed:
        if isinstance(volume, Mapping) and _CLAIM in volume:
            claims.append((key, volume))
        else:
            others.append((key, _without_owner(volume)))
    return claims, others


def _mounts(mounts: Any) -> list[object]:
    """Return what accelerators could clash with: the volumes that are mounted, and where."""
    listed = mounts.values() if isinstance(mounts, Mapping) else mounts
    return [
        _without_owner({"name": it.get("name"), "mountPath": it.get("mountPath")})
        if isinstance(it, Mapping)
        else it
        for it in listed
    ]


def _without_owner(volume: object) -> object:
    """Return a volume or a mount without a name that is the owner's: it means nothing."""
    if not isinstance(volume, Mapping) or _BRACE not in str(volume.get("name")):
        return volume
    return {**volume, "name": None}


@cache
def _traits() -> tuple[str, ...]:
    """Return the traits of which KubeSpawner makes what a scheduler reads, without names."""
    read = set[str]().union(*(names_used(getattr(KubeSpawner, it)) for it in _READING))
    known = set(KubeSpawner.class_trait_names())
    besides = _NO_SCHEDULER_READS.union(_LABELS, ["volumes"])
    return (*sorted((read & known) - besides), *_ALSO)
