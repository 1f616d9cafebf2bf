"""Which nodes and GPUs the cluster has for each accelerator or profile. Pure.

It counts by the selectors alone. Whether a server fits is the scheduler's question.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from itertools import chain
from typing import Any

import msgspec

from gpuspawner.compat.overrides import overridden
from gpuspawner.kube.objects import mapping
from gpuspawner.offers.shapes import thaw
from gpuspawner.offers.types import Accelerator
from gpuspawner.offers.vendors import GPU_LABELS, is_gpu
from gpuspawner.scheduling.node_affinity import NodeChoice, node_choice, selecting
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.scheduling.requests import is_device
from gpuspawner.scheduling.state import ClusterState


class Selection(msgspec.Struct, frozen=True):
    """The nodes of an accelerator, or of a profile or choice with GPUs.

    Attributes:
        name: As users or administrators know it.
        resource: That of its GPUs.
        choices: A node must match each.
    """

    name: str
    resource: str
    choices: tuple[NodeChoice, ...]


class Inventory(msgspec.Struct, frozen=True):
    """What the cluster has of a selection now.

    Attributes:
        nodes: How many of those that it selects have its GPUs; if none has, how many should.
    """

    name: str
    nodes: int
    gpus: int
    free: int


def take_stock(state: ClusterState, selections: Iterable[Selection]) -> Iterator[Inventory]:
    """Count nodes and GPUs of each selection, in this order, when the next one is asked for.

    In a cluster of 5,000 nodes, a fifth of them with GPUs, each takes a millisecond or two.
    """
    for selection in selections:
        resource, every = selection.resource, state.nodes.values()
        # Most nodes have no GPU, and their labels take long.
        having = (node for node in every if node.capacity.get(resource, 0) > 0)
        meant = (node for node in every if _should_have(node, resource))
        nodes = _selected(having, selection) or _selected(meant, selection)
        gpus = sum(node.allocatable.get(resource, 0) for node in nodes)
        free = sum(max(0, node.free.get(resource, 0)) for node in nodes)
        yield Inventory(selection.name, len(nodes), gpus, free)


def _should_have(node: NodeInfo, resource: str) -> bool:
    """Whether it has reported the resource once, or a label says that it has GPUs."""
    return resource in node.capacity or not node.labels.keys().isdisjoint(GPU_LABELS)


def _selected(nodes: Iterable[NodeInfo], selection: Selection) -> list[NodeInfo]:
    return [
        node
        for node in nodes
        if all(choice.matches(node.labels, node.name) for choice in selection.choices)
    ]


def nodes_with_gpus(state: ClusterState, selections: Iterable[Selection]) -> int:
    """Count the nodes that have GPUs, or what the hub offers instead, healthy or not."""
    offered = {it.resource for it in selections}
    return sum(
        any(n > 0 and (it in offered or _is_named_gpu(it)) for it, n in node.capacity.items())
        for node in state.nodes.values()
    )


def _is_named_gpu(resource: str) -> bool:
    """Whether it is one of GPUs by its name: network cards and /dev/fuse are devices, too."""
    return is_device(resource) and (is_gpu(resource) or "gpu" in resource)


def of_accelerators(
    accelerators: Iterable[Accelerator], everywhere: Mapping[str, object]
) -> tuple[Selection, ...]:
    """Return the selections of accelerators.

    Args:
        accelerators: All that the hub offers.
        everywhere: KubeSpawner's settings, which hold for every pod.
    """
    common = _choice(everywhere)
    return tuple(
        Selection(
            it.key,
            it.resource,
            (
                common,
                _choice({"node_selector": it.node_selector, _REQUIRED: thaw(it.node_affinity)}),
            ),
        )
        for it in accelerators
    )


def of_profiles(profiles: object, everywhere: Mapping[str, object]) -> tuple[Selection, ...]:
    """Return the selections of a profile list; of profiles without GPUs there are none.

    A choice with a node selector of its own is a selection of its own. A function that makes the
    list has none, because it needs a user.
    """
    listed = profiles.values() if isinstance(profiles, Mapping) else profiles
    if not isinstance(listed, Iterable):
        return ()
    return tuple(
        selection for profile in listed for selection in _of_profile(mapping(profile), everywhere)
    )


_REQUIRED = "node_affinity_required"
_SELECTING = ("node_selector", _REQUIRED)
_AMOUNTS = ("extra_resource_limits", "extra_resource_guarantees")


def _of_profile(
    profile: Mapping[str, Any], everywhere: Mapping[str, object]
) -> Iterator[Selection]:
    name = str(profile.get("display_name", ""))
    whole = mapping(profile.get("kubespawner_override"))
    variants = [
        (
            f"{name}: {choice.get('display_name', key)}",
            mapping(choice.get("kubespawner_override")),
        )
        for option in mapping(profile.get("profile_options")).values()
        for key, given in mapping(mapping(option).get("choices")).items()
        for choice in (mapping(given),)
    ]
    taken = [
        dict.fromkeys(
            str(resource)
            for amounts in _AMOUNTS
            for resource, amount in mapping(_whole(amounts, everywhere, whole, override)).items()
            if is_device(str(resource)) and str(amount) != "0"
        )
        for override in ({}, *(override for _, override in variants))
    ]
    gpus = _gpus(taken)
    selecting = [(of, it) for of, it in variants if any(map(it.get, _SELECTING))]
    for variant, override in selecting or [(name, {})]:
        settings = {it: _whole(it, everywhere, whole, override) for it in _SELECTING}
        for resource in gpus:
            yield Selection(variant, resource, (_choice(settings),))


def _gpus(taken: list[dict[str, None]]) -> list[str]:
    """Leave out what some choice takes beside a GPU: it isn't what the choice is about."""
    with_gpus = (it for it in taken if any(map(_is_named_gpu, it)))
    beside = {it for devices in with_gpus for it in devices if not _is_named_gpu(it)}
    return [it for it in dict.fromkeys(chain.from_iterable(taken)) if it not in beside]


def _whole(name: str, *overrides: Mapping[str, object]) -> object:
    """Return the value of a trait after all overrides."""
    return reduce(overridden, (it[name] for it in overrides if name in it), {})


def _choice(settings: Mapping[str, Any]) -> NodeChoice:
    """Compile KubeSpawner's settings; what can't be read selects every node."""
    terms = settings.get(_REQUIRED)
    listed = list(terms.values()) if isinstance(terms, Mapping) else terms
    labels = dict(mapping(settings.get("node_selector")))
    spec = selecting(labels, listed if isinstance(listed, list) else ())
    return node_choice(spec) if spec is not None else NodeChoice({}, None)
