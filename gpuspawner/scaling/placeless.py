"""A pod without what binds it to a zone.

A pool's next node may be in another zone than its present ones, so a pod that these wouldn't hold
only because of their zone may still get a node.
"""

from msgspec import structs

from gpuspawner.kube.meta import NodeSelector, NodeSelectorTerm
from gpuspawner.kube.pods import Affinity, Pod, PodAffinity

_PLACES = ("/zone", "/region")


def without_place(pod: Pod) -> Pod:
    """Return the pod without volumes, and without all selectors and rules about zones."""
    spec = pod.spec
    selector = {
        key: value for key, value in (spec.node_selector or {}).items() if not key.endswith(_PLACES)
    }
    spread = [
        it for it in spec.topology_spread_constraints or () if not it.topology_key.endswith(_PLACES)
    ]
    placeless = structs.replace(
        spec,
        volumes=None,
        node_selector=selector,
        affinity=_affinity(spec.affinity),
        topology_spread_constraints=spread,
    )
    return structs.replace(pod, spec=placeless)


def _affinity(affinity: Affinity | None) -> Affinity | None:
    if affinity is None:
        return None
    nodes = affinity.node_affinity
    return structs.replace(
        affinity,
        node_affinity=nodes and structs.replace(nodes, required=_required(nodes.required)),
        pod_affinity=_pods(affinity.pod_affinity),
        pod_anti_affinity=_pods(affinity.pod_anti_affinity),
    )


def _pods(affinity: PodAffinity | None) -> PodAffinity | None:
    if affinity is None or affinity.required is None:
        return affinity
    kept = [it for it in affinity.required if not it.topology_key.endswith(_PLACES)]
    return PodAffinity(kept)


def _required(required: NodeSelector | None) -> NodeSelector | None:
    if required is None or not required.node_selector_terms:
        return required
    terms = []
    for term in required.node_selector_terms:
        expressions = term.match_expressions or ()
        kept = tuple(it for it in expressions if not it.key.endswith(_PLACES))
        if not kept and term.match_expressions and not term.match_fields:
            return None  # the term is about zones alone, so any node of the right zone matches
        terms.append(NodeSelectorTerm(kept or None, term.match_fields))
    return NodeSelector(tuple(terms))
