"""Writes a grant, and what each server needs, into a pod; reads a server's limits back.

Nothing is set on the spawner or remembered: each spawn starts from KubeSpawner's own pod, so a
server keeps nothing of an earlier grant.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from msgspec import structs

from gpuspawner.kube.quantity import exact_bytes
from gpuspawner.offers import node_affinity, vendors
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.shapes import thaw
from gpuspawner.offers.types import Accelerator

MOST_TERMS = 64
"""More node selector terms than this in every pod would slow the scheduler and the hub down."""

SHARED_MEMORY = "gpuspawner-shared-memory"
"""Name of the volume at `DEV_SHM`."""

DEV_SHM = "/dev/shm"  # noqa: S108


class ManifestError(ValueError):
    """The accelerator of this key contradicts the hub's other configuration.

    The administrator can fix this, so the text names traits.
    """

    def __init__(self, accelerator: str, reason: str) -> None:
        super().__init__(f"GPUSpawner.accelerators[{accelerator!r}]: {reason}")


_GPUS = "GPUSPAWNER_GPUS"
"""How many GPUs a server was granted, in its environment."""


@dataclass(frozen=True, slots=True)
class PodRules:
    """What the administrator configures for all pods, independent of the grant.

    Attributes:
        accelerators: All on offer. A pod requests only its own accelerator's resource, even if
            `KubeSpawner.extra_resource_limits` names another one's. But if the hub only discovered
            an accelerator, a server for which nobody chose a GPU keeps what a group, a hook or a
            class of the administrator's gives it.
        cpu_environment: Environment of servers without a GPU. If the NVIDIA runtime is a node's
            default, a container without `NVIDIA_VISIBLE_DEVICES` sees every GPU of the node.
        keeps_environment: Whether what a pod has under these names stays. Without a device plugin,
            it is how an administrator gives servers a GPU.
        cpu_avoids: Accelerators whose nodes servers without a GPU stay away from.
        memory_requested: The fraction of the granted memory to request; the limit is all of it.
        cpu_requested: The same for the CPU.
    """

    accelerators: tuple[Accelerator, ...] = ()
    cpu_environment: Mapping[str, str] = field(
        default_factory=lambda: MappingProxyType({"NVIDIA_VISIBLE_DEVICES": "void"}), hash=False
    )
    keeps_environment: bool = False
    cpu_avoids: tuple[Accelerator, ...] = ()
    memory_requested: float = 1.0
    cpu_requested: float = 1.0


EVERYWHERE = PodRules()


def apply(pod: Mapping[str, Any], grant: Grant, rules: PodRules = EVERYWHERE) -> dict[str, Any]:
    """Return a new pod with the grant written into it.

    The two pods share the parts that no grant changes, because a refusal tries dozens of grants. So
    change neither in place.

    Args:
        pod: KubeSpawner's pod as plain data; its first container is the server's.
        grant: What to write into it.
        rules: What applies to every pod.

    Raises:
        ManifestError: The accelerator contradicts what the pod already has.
    """
    first, *others = pod["spec"]["containers"]
    server = dict(first)
    spec = {**pod["spec"], "containers": [server, *others]}
    made = {**pod, "spec": spec}
    if grant.image is not None:
        server["image"] = grant.image.image
    _ask_for(server, grant, rules)
    _tell_sizes(server, grant, rules)
    if grant.accelerator is None:
        if vendors.any_gpu(server["resources"]["limits"], server["resources"]["requests"]):
            return made
        stays = {it["name"] for it in server["env"]} if rules.keeps_environment else set[str]()
        hiding = {name: v for name, v in rules.cpu_environment.items() if name not in stays}
        _set_environment(server, {**hiding, _GPUS: "0"})
        if avoided := off(rules.cpu_avoids):
            node_affinity.require(spec, avoided)
        return made
    own = {"GPUSPAWNER_ACCELERATOR": grant.accelerator.key, _GPUS: str(grant.gpus)}
    _set_environment(server, {**grant.accelerator.environment, **own})
    _place(spec, grant.accelerator)
    _add_volumes(spec, grant.accelerator)
    _add_shared_memory(spec, grant)
    return made


def showing_gpus(pod: Mapping[str, Any], rules: PodRules) -> dict[str, Any]:
    """Return a pod that hides no GPU that a ``modify_pod_hook`` has given it after `apply`."""
    hiding = {**rules.cpu_environment, _GPUS: "0"}.items()

    def shown(container: dict[str, Any]) -> dict[str, Any]:
        given, variables = container.get("resources") or {}, container.get("env") or ()
        if not vendors.any_gpu(given.get("limits") or {}, given.get("requests") or {}):
            return container
        left = [it for it in variables if (it["name"], it.get("value")) not in hiding]
        return {**container, "env": left} if len(left) < len(variables) else container

    spec = pod["spec"]
    return {**pod, "spec": {**spec, "containers": [shown(it) for it in spec["containers"]]}}


def off(accelerators: Iterable[Accelerator]) -> node_affinity.Terms:
    """Return node selector terms that match the nodes that none of these accelerators selects.

    Only the accelerators' own selectors are negated, not, for example, every label for a GPU
    product: a node may have GPUs that aren't on offer.

    The negation of a selector with two labels has two terms, "not this or not that". So ten such
    selectors give 2^10 terms, unless they share a label or each accelerator has one label only.

    Raises:
        ManifestError: There would be more than `MOST_TERMS`.
    """
    every: node_affinity.Terms = ()
    for accelerator, term in ((it, term) for it in accelerators for term in _nodes_of(it)):
        avoided = node_affinity.neither((term,))
        every = node_affinity.both(every, avoided) if every else avoided
        if len(every) > MOST_TERMS:
            reason = (
                f"to keep other servers off its nodes too takes more than {MOST_TERMS} node "
                "selector terms; select the nodes of every accelerator by one label alone, or "
                "taint them and leave keep_cpu_servers_off_accelerators out"
            )
            raise ManifestError(accelerator.key, reason)
    return every


def _nodes_of(accelerator: Accelerator) -> node_affinity.Terms:
    labels = node_affinity.from_labels(accelerator.node_selector)
    terms = node_affinity.read(accelerator.node_affinity)
    if accelerator.node_selector and accelerator.node_affinity:
        return node_affinity.both(labels, terms)
    return terms or labels


def _ask_for(server: dict[str, Any], grant: Grant, rules: PodRules) -> None:
    """Set requests and limits; for devices, Kubernetes requires both to be equal."""
    amounts = {
        "limits": _amounts(grant, 1.0, 1.0),
        "requests": _amounts(grant, rules.memory_requested, rules.cpu_requested),
    }
    others = {it.resource for it in rules.accelerators if grant.accelerator or not it.discovered}
    resources = server["resources"] = dict(server.get("resources") or {})
    for side, own in amounts.items():
        kept = {k: v for k, v in (resources.get(side) or {}).items() if k not in others}
        resources[side] = {**kept, **own}


def _amounts(grant: Grant, memory_part: float, cpu_part: float) -> dict[str, str]:
    amounts: dict[str, str] = {}
    if grant.memory is not None:
        amounts["memory"] = exact_bytes(part_of(grant.memory, memory_part))
    if grant.cpu is not None:
        millicores = part_of(grant.cpu, cpu_part)
        amounts["cpu"] = f"{millicores}m" if millicores % 1000 else str(millicores // 1000)
    if grant.accelerator is not None:
        amounts[grant.accelerator.resource] = str(grant.gpus)
    return amounts


def _tell_sizes(server: dict[str, Any], grant: Grant, rules: PodRules) -> None:
    """Tell a server of its memory, in bytes, and of its CPU, in cores.

    `Spawner.get_env` (``jupyterhub/spawner.py``, 5.5.0) does so by what is configured. They come
    first: Kubernetes expands ``$(MEM_LIMIT)`` only in the variables after it.
    """
    sizes: dict[str, str] = {}
    if grant.memory is not None:
        least = part_of(grant.memory, rules.memory_requested)
        sizes |= {"MEM_LIMIT": str(grant.memory), "MEM_GUARANTEE": str(least)}
    if grant.cpu is not None:
        least = part_of(grant.cpu, rules.cpu_requested)
        sizes |= {"CPU_LIMIT": str(grant.cpu / 1000), "CPU_GUARANTEE": str(least / 1000)}
    kept = [entry for entry in server.get("env") or () if entry["name"] not in sizes]
    server["env"] = [*({"name": name, "value": v} for name, v in sizes.items()), *kept]


def part_of(amount: int, part: float) -> int:
    """Return what a pod requests of an amount."""
    # Use the configured decimal, not the nearest binary fraction, which may be above it.
    return math.ceil(amount * Fraction(str(part)))


def _set_environment(server: dict[str, Any], variables: Mapping[str, str]) -> None:
    kept = [entry for entry in server.get("env") or () if entry["name"] not in variables]
    server["env"] = [*kept, *({"name": name, "value": v} for name, v in variables.items())]


def _place(spec: dict[str, Any], accelerator: Accelerator) -> None:
    selector = spec.get("nodeSelector") or {}
    for key, value in accelerator.node_selector.items():
        if selector.get(key, value) != value:
            reason = (
                f"its node_selector wants {key}={value}, "
                f"but KubeSpawner's configuration wants {key}={selector[key]}"
            )
            raise ManifestError(accelerator.key, reason)
    if accelerator.node_selector:
        spec["nodeSelector"] = {**selector, **accelerator.node_selector}
    if accelerator.node_affinity:
        node_affinity.require(spec, node_affinity.read(accelerator.node_affinity))
    if accelerator.tolerations:
        had = list(spec.get("tolerations") or ())
        known = [_meaning(toleration) for toleration in had]
        added = [thaw(toleration) for toleration in accelerator.tolerations]
        spec["tolerations"] = had + [it for it in added if _meaning(it) not in known]
    if accelerator.runtime_class is not None:
        spec["runtimeClassName"] = accelerator.runtime_class


def _meaning(toleration: Any) -> dict[str, Any]:
    meant = {key: value for key, value in toleration.items() if value not in (None, "")}
    if meant.get("operator") == "Equal":
        del meant["operator"]
    return meant


def without_volumes(grant: Grant) -> Grant:
    """Return the same grant for a pod that lacks the volumes of a server, which need a user.

    An accelerator may mount one of `KubeSpawner.volumes`, or of a hook's.
    """
    if grant.accelerator is None:
        return grant
    bare = replace(grant.accelerator, volumes=(), volume_mounts=(), shared_memory=None)
    return structs.replace(grant, accelerator=bare)


def _add_volumes(spec: dict[str, Any], accelerator: Accelerator) -> None:
    for volume in accelerator.volumes:
        _add_volume(spec, thaw(volume), accelerator)
    for mount in accelerator.volume_mounts:
        _add_mount(spec, thaw(mount), accelerator)


def _add_shared_memory(spec: dict[str, Any], grant: Grant) -> None:
    """Give the server a /dev/shm of the size that the accelerator sets.

    Data in /dev/shm counts as memory of the container that wrote it. So it needs no extra memory
    request, and its size is never above the server's memory. If the administrator set no size, a
    volume that is already mounted there stays.
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


# Lets a server that crashes leave the end of its log, which the hub may read in its pod's status.
#
# The hub's role in Zero-to-JupyterHub 4.4 doesn't let it read logs.


def with_last_words(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pod whose server, its first container, ends with its log's last lines as a message.

    That is so only if it ends with an error and writes no message of its own (Kubernetes
    documentation, Pod API, ``terminationMessagePolicy``). What the administrator has set stays, and
    so do other containers: the log of one that isn't the user's may have secrets.
    """
    spec = pod["spec"]
    server, *others = spec["containers"]
    server = {"terminationMessagePolicy": "FallbackToLogsOnError", **server}
    return {**pod, "spec": {**spec, "containers": [server, *others]}}


# The limits of a server, read from its pod.


def server_limits(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the limits of a pod's server, which is its first container, by resource."""
    resources = pod["spec"]["containers"][0].get("resources") or {}
    limits: Mapping[str, Any] = resources.get("limits") or {}
    return limits
