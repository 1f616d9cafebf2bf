"""Which flavors a pod may get, in the order in which Kueue tries them.

``checkFlavorForPodSets`` and ``flavorSelector`` in ``pkg/scheduler/flavorassigner`` of Kueue
0.15.0.
"""

from collections.abc import Iterable, Iterator

from gpuspawner.kube.kueue import FlavorQuotas, ResourceFlavor, ResourceGroup
from gpuspawner.kube.meta import NodeSelector, NodeSelectorTerm
from gpuspawner.kube.pods import Affinity, NodeAffinity, PodSpec
from gpuspawner.kueue.objects import KueueObjects
from gpuspawner.scheduling.node_affinity import NodeChoice, node_choice
from gpuspawner.scheduling.taint_toleration import untolerated

_DECIDING = ("NoSchedule", "NoExecute")


def matching(
    spec: PodSpec, group: ResourceGroup, objects: KueueObjects
) -> Iterator[ResourceFlavor]:
    """Yield the flavors of a group of resources whose labels and taints allow a pod.

    Raises:
        SelectorError: The pod's affinity can't be read.
    """
    known = [it for it in map(objects.flavor, _names(group.flavors)) if it is not None]
    keys = {key for it in known for key in it.spec.node_labels or {}}
    choice = _choice(spec, keys)
    for it in known:
        tolerations = [*(spec.tolerations or ()), *(it.spec.tolerations or ())]
        taints = [taint for taint in it.spec.node_taints or () if taint.effect in _DECIDING]
        if untolerated(taints, tolerations) is None and choice.matches(
            it.spec.node_labels or {}, ""
        ):
            yield it


def _names(flavors: Iterable[FlavorQuotas] | None) -> list[str]:
    return [it.name for it in flavors or ()]


def _choice(spec: PodSpec, keys: set[str]) -> NodeChoice:
    """Return what a pod asks of its node, as far as the flavors' labels tell of it."""
    selector = {key: value for key, value in (spec.node_selector or {}).items() if key in keys}
    required = spec.required_nodes
    terms = required.node_selector_terms if required else None
    told = tuple(
        NodeSelectorTerm(tuple(it for it in term.match_expressions or () if it.key in keys))
        for term in terms or ()
    )
    affinity = None
    if told and all(it.match_expressions for it in told):
        affinity = Affinity(node_affinity=NodeAffinity(NodeSelector(told)))
    return node_choice(PodSpec(node_selector=selector, affinity=affinity))
