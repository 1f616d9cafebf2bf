"""Writes a grant into a pod.

Nothing is set on the spawner or remembered: each spawn starts from KubeSpawner's own pod, so a
server keeps nothing of an earlier grant.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from gpuspawner.kube.quantity import exact_bytes
from gpuspawner.manifest import node_affinity
from gpuspawner.manifest.avoiding import off
from gpuspawner.manifest.errors import ManifestError
from gpuspawner.manifest.volumes import add_shared_memory, add_volumes
from gpuspawner.offers import Accelerator
from gpuspawner.offers.frozen import thaw
from gpuspawner.policy import Grant


def _void() -> Mapping[str, str]:
    return MappingProxyType({"NVIDIA_VISIBLE_DEVICES": "void"})


@dataclass(frozen=True, slots=True)
class PodRules:
    """What the administrator configures for all pods, independent of the grant.

    Attributes:
        accelerators: All on offer. A pod requests only its own accelerator's resource, even if
            `KubeSpawner.extra_resource_limits` names another one's.
        cpu_environment: Environment of servers without a GPU. If the NVIDIA runtime is a node's
            default, a container without `NVIDIA_VISIBLE_DEVICES` sees every GPU of the node.
        cpu_avoids: Accelerators whose nodes servers without a GPU stay away from.
        memory_requested: The fraction of the granted memory to request; the limit is all of it.
        cpu_requested: The fraction of the granted CPU to request; the limit is all of it.
    """

    accelerators: tuple[Accelerator, ...] = ()
    cpu_environment: Mapping[str, str] = field(default_factory=_void, hash=False)
    cpu_avoids: tuple[Accelerator, ...] = ()
    memory_requested: float = 1.0
    cpu_requested: float = 1.0


EVERYWHERE = PodRules()


def apply(pod: Mapping[str, Any], grant: Grant, rules: PodRules = EVERYWHERE) -> dict[str, Any]:
    """Return a new pod with the grant written into it; leave the given pod as it is.

    The two pods share the parts that no grant changes, because a refusal tries dozens of grants. So
    change neither pod in place.

    Args:
        pod: KubeSpawner's pod as the API has it (plain data, camelCase); its first container is
            the server's.
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
    if grant.accelerator is None:
        _set_environment(server, {**rules.cpu_environment, "GPUSPAWNER_GPUS": "0"})
        if avoided := off(rules.cpu_avoids):
            _require(spec, avoided)
        return made
    own = {"GPUSPAWNER_ACCELERATOR": grant.accelerator.key, "GPUSPAWNER_GPUS": str(grant.gpus)}
    _set_environment(server, {**grant.accelerator.environment, **own})
    _place(spec, grant.accelerator)
    add_volumes(spec, grant.accelerator)
    add_shared_memory(spec, grant)
    return made


def _ask_for(server: dict[str, Any], grant: Grant, rules: PodRules) -> None:
    """Set requests and limits; for devices, Kubernetes requires both to be equal."""
    amounts = {
        "limits": _amounts(grant, 1.0, 1.0),
        "requests": _amounts(grant, rules.memory_requested, rules.cpu_requested),
    }
    others = {accelerator.resource for accelerator in rules.accelerators}
    resources = server["resources"] = dict(server.get("resources") or {})
    for side, own in amounts.items():
        kept = {k: v for k, v in (resources.get(side) or {}).items() if k not in others}
        resources[side] = {**kept, **own}


def _amounts(grant: Grant, memory_part: float, cpu_part: float) -> dict[str, str]:
    amounts: dict[str, str] = {}
    if grant.memory is not None:
        amounts["memory"] = exact_bytes(_part(grant.memory, memory_part))
    if grant.cpu is not None:
        millicores = _part(grant.cpu, cpu_part)
        amounts["cpu"] = f"{millicores}m" if millicores % 1000 else str(millicores // 1000)
    if grant.accelerator is not None:
        amounts[grant.accelerator.resource] = str(grant.gpus)
    return amounts


def _part(amount: int, part: float) -> int:
    # Use the configured decimal, not the nearest binary fraction, which may be above it.
    return math.ceil(amount * Fraction(str(part)))


def _set_environment(server: dict[str, Any], variables: Mapping[str, str]) -> None:
    kept = [entry for entry in server.get("env") or () if entry["name"] not in variables]
    server["env"] = [*kept, *({"name": name, "value": v} for name, v in variables.items())]


def _place(spec: dict[str, Any], accelerator: Accelerator) -> None:
    """Send the pod to the accelerator's nodes; keep all its own constraints."""
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
        _require(spec, node_affinity.read(accelerator.node_affinity))
    if accelerator.tolerations:
        had = list(spec.get("tolerations") or ())
        known = [_meaning(toleration) for toleration in had]
        added = [thaw(toleration) for toleration in accelerator.tolerations]
        spec["tolerations"] = had + [it for it in added if _meaning(it) not in known]
    if accelerator.runtime_class is not None:
        spec["runtimeClassName"] = accelerator.runtime_class


def _require(spec: dict[str, Any], terms: node_affinity.Terms) -> None:
    affinity = spec["affinity"] = dict(spec.get("affinity") or {})
    node = affinity["nodeAffinity"] = dict(affinity.get("nodeAffinity") or {})
    required = node.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is not None:
        terms = node_affinity.both(node_affinity.read(required["nodeSelectorTerms"]), terms)
    node["requiredDuringSchedulingIgnoredDuringExecution"] = {
        "nodeSelectorTerms": node_affinity.write(terms)
    }


def _meaning(toleration: Any) -> dict[str, Any]:
    """Return a toleration without its defaults, to compare it."""
    meant = {key: value for key, value in toleration.items() if value not in (None, "")}
    if meant.get("operator") == "Equal":
        del meant["operator"]
    return meant
