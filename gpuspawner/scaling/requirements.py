"""What a pool requires of its nodes' labels and taints, before a node exists.

The rules are those of Karpenter's ``pkg/scheduling/requirements.go`` (v1.14.1): a label that the
pool doesn't define matches only if the provider gives it to every node.
"""

import operator
from collections.abc import Callable, Mapping, Sequence

import msgspec

from gpuspawner.kube.meta import LabelSelectorRequirement, NodeSelectorTerm
from gpuspawner.kube.nodes import Taint
from gpuspawner.kube.pods import PodSpec
from gpuspawner.scheduling.filters import Filters
from gpuspawner.scheduling.taint_toleration import untolerated

# Providers label each node by its instance type, zone and so on, so any value may come.
_PROVIDERS = ("kubernetes.io", "k8s.io", "aws.com", "k8s.aws", "azure.com", "google.com",
              "oraclecloud.com")  # fmt: skip

_COMPARE: Mapping[str, Callable[[int, int], bool]] = {
    "Gt": operator.gt,
    "Lt": operator.lt,
    "Gte": operator.ge,
    "Lte": operator.le,
}


class PoolRequirements(msgspec.Struct, frozen=True):
    """The labels, expressions and taints of a pool's nodes.

    Attributes:
        expressions: All must hold for each node's labels.
    """

    labels: Mapping[str, str]
    expressions: tuple[LabelSelectorRequirement, ...]
    taints: tuple[Taint, ...]

    def allow(self, filters: Filters) -> bool:
        """Whether one of the pool's nodes may have what the pod selects, and tolerates."""
        spec = filters.pod.spec
        lasting = [it for it in self.taints if it.effect in ("NoSchedule", "NoExecute")]
        if untolerated(lasting, spec.tolerations or ()) is not None:
            return False
        selected = [
            LabelSelectorRequirement(key, "In", (value,))
            for key, value in (spec.node_selector or {}).items()
        ]
        return all(map(self._may_match, selected)) and self._may_match_a_term(spec)

    def describe(self, labels: Mapping[str, str]) -> bool:
        """Whether the pool would still make a node with these labels."""
        return all(_holds(it, labels[it.key]) for it in self.expressions if it.key in labels)

    def _may_match_a_term(self, spec: PodSpec) -> bool:
        required = spec.required_nodes
        return required is None or any(map(self._may_match_all, required.node_selector_terms or ()))

    def _may_match_all(self, term: NodeSelectorTerm) -> bool:
        if term.match_fields or not term.match_expressions:
            return False  # fields name one present node; an empty term matches nothing
        return all(map(self._may_match, term.match_expressions))

    def _may_match(self, wanted: LabelSelectorRequirement) -> bool:
        known = [it for it in self.expressions if it.key == wanted.key]
        if wanted.key in self.labels:
            known.append(LabelSelectorRequirement(wanted.key, "In", (self.labels[wanted.key],)))
        values = _values(known)
        if values is not None:
            return any(_holds(wanted, value) for value in values)
        if wanted.operator in ("NotIn", "DoesNotExist"):
            return True
        if any(it.operator == "DoesNotExist" for it in known):
            return False
        if not known:
            domain = wanted.key.rpartition("/")[0]
            return "karpenter" in domain or domain.endswith(_PROVIDERS)
        if wanted.operator == "In":
            return any(all(_holds(it, value) for it in known) for value in wanted.values or ())
        return True


def _values(known: Sequence[LabelSelectorRequirement]) -> list[str] | None:
    """Return the values that a label can have; None if they aren't listed."""
    listed = [set(it.values or ()) for it in known if it.operator == "In"]
    if not listed:
        return None
    return [value for value in set.intersection(*listed) if all(_holds(it, value) for it in known)]


def _holds(wanted: LabelSelectorRequirement, value: str) -> bool:
    values = wanted.values or ()
    match wanted.operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return True
        case "Gt" | "Lt" | "Gte" | "Lte":  # the last two are Karpenter's
            try:
                return _COMPARE[wanted.operator](int(value), int(values[0]))
            except (ValueError, IndexError):
                return False
        case _:
            return False
