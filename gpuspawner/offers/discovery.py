"""Discovers accelerators from the nodes if the administrator configured none.

It reads the labels and taints in `vendors`. If no label names the model (as on AKS and in EKS node
groups), it distinguishes nodes by instance type, and if that names no machine, by their size.
"""

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from itertools import chain, count
from types import MappingProxyType

import msgspec

from gpuspawner.offers import vendors
from gpuspawner.offers.shapes import Frozen, freeze
from gpuspawner.offers.types import Accelerator
from gpuspawner.offers.vendors import HOSTNAME, INSTANCE_TYPE, MODEL_LABELS, NAMELESS, is_gpu
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.scheduling.state import ClusterState

SHARED_MEMORY = 8 * 2**30
"""Size of /dev/shm in bytes. The workers of a PyTorch DataLoader crash with only 64 MB."""

_GB = re.compile(r"^(\d+)gb$", re.IGNORECASE)
_SIZE = re.compile(r"([1-9][0-9]{0,6})G?")
_NAME = re.compile(r".{1,3}|[a-z]{0,3}[0-9].*")
"""A word that is a name in capital letters, such as T4, H100 or RTX."""
_MOST = 64
"""The largest GPU count to offer, so that a wrong number on a node can't fill the form."""
_GIB = 2**30
_NAMING = (*MODEL_LABELS, INSTANCE_TYPE)


class _Model(msgspec.Struct, frozen=True, order=True):
    """A group of nodes.

    Attributes:
        label: Names the model or the machine; empty if no label does.
        variant: The labels that tell it from others of the same model.
        machines: Host names, if nothing else tells unlike machines apart.
    """

    label: str
    value: str
    resource: str
    variant: tuple[tuple[str, str], ...] = ()
    machines: tuple[str, ...] = ()

    @property
    def without_variant(self) -> "_Model":
        """What all its variants have in common."""
        return _Model(self.label, self.value, self.resource)

    @property
    def selector(self) -> dict[str, str]:
        """The labels of its nodes."""
        named = {self.label: self.value} if self.label and not self.machines else {}
        return named | dict(self.variant)


def discover(state: ClusterState, runtime_classes: Container[str] = ()) -> tuple[Accelerator, ...]:
    """Find the accelerators of the nodes, sorted by key. The same nodes always get the same keys.

    *runtime_classes* are the names of those that the cluster has, as far as they matter here.
    """
    nodes: dict[_Model, list[NodeInfo]] = {}
    for node in state.nodes.values():
        for resource in gpus(node):
            model = _Model(*model_label(node), resource, tuple(_variant(node)))
            nodes.setdefault(model, []).append(node)
    variants: defaultdict[_Model, set[tuple[str, str]]] = defaultdict(set)
    for model in nodes:
        variants[model.without_variant].update(model.variant)
    apart = dict(chain.from_iterable(_apart(*it) for it in nodes.items()))
    found: dict[str, Accelerator] = {}
    for model, its in sorted(apart.items()):
        key = _free_key(_key(model), found)
        affinity = _affinity(model, variants[model.without_variant])
        found[key] = _accelerator(key, model, its, affinity, runtime_classes)
    return tuple(found[key] for key in sorted(found))


def gpus(node: NodeInfo) -> Iterator[str]:
    """Yield the resources of a node that are GPUs, also if none of them is allocatable."""
    # If all GPUs of a node are unhealthy, they still count in its capacity.
    for resource in filter(is_gpu, node.capacity.keys() | node.allocatable.keys()):
        if node.capacity.get(resource, 0) + node.allocatable.get(resource, 0) > 0:
            yield resource


def model_label(node: NodeInfo) -> tuple[str, str]:
    """Return the label that names a node's model, or else its type, and its value; "" if none."""
    for label in _NAMING:
        if node.labels.get(label):
            return label, node.labels[label]
    # An empty label isn't a missing one: only this tells the node from those without any.
    return next((label for label in _NAMING if label in node.labels), ""), ""


def _variant(node: NodeInfo) -> Iterator[tuple[str, str]]:
    for label in vendors.VARIANT_LABELS:
        value = node.labels.get(label, "")
        if value and value not in vendors.WHOLE:
            yield label, value


def _is_nameless(model: _Model) -> bool:
    return model.label in ("", INSTANCE_TYPE) and model.value in NAMELESS


def _apart(model: _Model, nodes: list[NodeInfo]) -> Iterator[tuple[_Model, list[NodeInfo]]]:
    """Tell machines apart that no label names, if they differ in size."""
    sizes: dict[tuple[int, ...], list[NodeInfo]] = {}
    for node in nodes:
        amounts = node.capacity.get(model.resource, 0), node.capacity.get("cpu", 0)
        memory = round(node.capacity.get("memory", 0) / _GIB)
        sizes.setdefault((*amounts, memory), []).append(node)
    if len(sizes) == 1 or not _is_nameless(model) or not all(HOSTNAME in it.labels for it in nodes):
        yield model, nodes
        return
    for alike in sizes.values():
        hosts = tuple(sorted(node.labels[HOSTNAME] for node in alike))
        yield msgspec.structs.replace(model, machines=hosts), alike


def _key(model: _Model) -> str:
    value = "" if _is_nameless(model) else model.value.removesuffix(vendors.SHARED)
    parts = [model.machines[0] if model.machines else value or "gpu"]
    parts.append(vendors.part(model.resource, model.selector))
    if vendors.is_shared(model.resource, model.selector):
        parts.append("shared")
    text = re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")
    return text.removeprefix("nvidia-")[-60:].strip("-") or "gpu"


def _free_key(key: str, taken: Iterable[str]) -> str:
    keys = chain((key,), (f"{key}-{number}" for number in count(2)))
    return next(candidate for candidate in keys if candidate not in taken)


def _accelerator(
    key: str,
    model: _Model,
    nodes: list[NodeInfo],
    affinity: tuple[Frozen, ...],
    runtime_classes: Container[str],
) -> Accelerator:
    resource, selector = model.resource, model.selector
    most = max(node.allocatable.get(resource, 0) for node in nodes)
    shared = vendors.is_shared(resource, selector)
    has_class = NVIDIA_CLASS in runtime_classes and needs_class([resource], nodes)
    return Accelerator(
        key=key,
        display_name=_display_name(model, shared=shared),
        description=_memory(model, nodes),
        resource=resource,
        # A device plugin may refuse several shares, and they don't give more than one GPU anyway.
        counts=(1,) if shared else tuple(range(1, min(max(most, 1), _MOST) + 1)),
        node_selector=MappingProxyType(selector),
        node_affinity=affinity,
        tolerations=_tolerations(resource, nodes),
        runtime_class=NVIDIA_CLASS if has_class else None,
        shared_memory=SHARED_MEMORY,
        discovered=True,
    )


def _affinity(model: _Model, variants: Iterable[tuple[str, str]]) -> tuple[Frozen, ...]:
    """Keep a server off the nodes of the other *variants* that its labels select too."""
    expressions: list[dict[str, object]] = []
    if not model.label:
        expressions += [{"key": it, "operator": "DoesNotExist"} for it in _NAMING]
    if model.machines:
        hosts = list(model.machines)
        expressions.append({"key": HOSTNAME, "operator": "In", "values": hosts})
    own = dict(model.variant)
    others: dict[str, set[str]] = {}
    for label, value in variants:
        if label not in own:
            others.setdefault(label, set()).add(value)
    expressions += [
        {"key": label, "operator": "NotIn", "values": sorted(values)}
        for label, values in sorted(others.items())
    ]
    return (freeze({"matchExpressions": expressions}),) if expressions else ()


def _memory(model: _Model, nodes: list[NodeInfo]) -> str:
    """Return the memory of each GPU as text; "" if the nodes' labels differ."""
    own = {f"{model.resource.removesuffix('.shared')}.memory": 1024}
    part = vendors.part(model.resource, model.selector)
    units = own if part else {**own, **vendors.MEMORY_LABELS}
    sizes = {
        next(((node.labels[it], units[it]) for it in units if it in node.labels), None)
        for node in nodes
    }
    size = sizes.pop() if len(sizes) == 1 else None
    found = _SIZE.fullmatch(size[0]) if size else None
    return f"{int(found[1]) / size[1]:.3g} GiB of memory" if found and size else ""


def _tolerations(resource: str, nodes: list[NodeInfo]) -> tuple[Frozen, ...]:
    """Return tolerations only for taints that reserve nodes for GPU pods."""
    found = {
        (taint.key, "" if _is_for_gpus(taint.key, resource) else taint.value, taint.effect)
        for node in nodes
        for taint in node.taints
        if _is_for_gpus(taint.key, resource) or (taint.key, taint.value) in vendors.TAINTS
    }
    return tuple(freeze(_toleration(*taint)) for taint in sorted(found))


def _is_for_gpus(key: str, resource: str) -> bool:
    return key == resource or key in vendors.RESOURCES


def _toleration(key: str, value: str, effect: str) -> dict[str, str]:
    how = {"operator": "Equal", "value": value} if value else {"operator": "Exists"}
    return {"key": key, **how, "effect": effect}


def _display_name(model: _Model, *, shared: bool) -> str:
    vendor, what = vendors.maker(model.resource)
    if not model.value or model.label == INSTANCE_TYPE:
        machines = " … ".join(dict.fromkeys((*model.machines[:1], *model.machines[-1:])))
        where = machines or ("" if _is_nameless(model) else model.value)
        name = f"{vendor} {what} ({where})" if where else f"{vendor} {what}"
    else:
        words = _words(model.value.removesuffix(vendors.SHARED))
        name = " ".join(words if words[0] == vendor else (vendor, *words)).strip()
    name = " ".join(filter(None, (name, vendors.part(model.resource, model.selector))))
    return f"{name}, shared" if shared else name


def _words(value: str) -> list[str]:
    words = re.split("[-_]", value)
    if value.islower():
        words = [word.upper() if _NAME.fullmatch(word) else word.capitalize() for word in words]
    return [_vendor(word) or _GB.sub(r"\1 GB", word) for word in words if word] or [""]


def _vendor(word: str) -> str:
    """Return the name of a vendor as it writes itself; "" if the word names none."""
    return next((it for it, _ in vendors.RESOURCES.values() if it.lower() == word.lower()), "")


def note(accelerators: Iterable[Accelerator]) -> str:
    """Tell the administrator in one line what was discovered."""
    found = ", ".join(f"{it.key} (up to {it.counts[-1]} a node)" for it in accelerators)
    return (
        "GPUSpawner.accelerators is empty, so the nodes' labels were read. "
        f"Found: {found or 'no GPU'}. A pool that has no node now cannot be seen: configure it."
    )


# Which nodes give containers their NVIDIA GPUs only with a RuntimeClass: those of k3s and RKE2.
#
# Both find NVIDIA's runtime and have a RuntimeClass for it, but containers run with runc unless
# ``--default-runtime`` says otherwise (k3s-io/docs, docs/advanced.md).

NVIDIA_CLASS = "nvidia"
_ARGUMENTS = ("k3s.io/node-args", "rke2.io/node-args")
"""Annotations with the arguments of the node's k3s or RKE2, those of its file among them."""
_NVIDIA_BY_DEFAULT = re.compile(rf"--default-runtime\W+{NVIDIA_CLASS}\b")


def needs_class(resources: Iterable[str], nodes: Iterable[NodeInfo]) -> bool:
    """Whether a container needs the class for one of these resources on one of these nodes."""
    return any(it.startswith("nvidia.com/") for it in resources) and any(map(_needs, nodes))


def may_need_class(state: ClusterState) -> bool:
    """Whether a container needs the class for a GPU of some node."""
    return any(needs_class(gpus(node), (node,)) for node in state.nodes.values())


def _needs(node: NodeInfo) -> bool:
    notes = (node.node.metadata.annotations if node.node else None) or {}
    given = next((notes[it] for it in _ARGUMENTS if it in notes), None)
    if given is None:
        return node.labels.get(INSTANCE_TYPE) in ("k3s", "rke2")
    return _NVIDIA_BY_DEFAULT.search(given) is None
