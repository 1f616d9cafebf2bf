"""Combines node selector terms by "and" and by "not", and writes them into pods.

A list of terms is a disjunction of conjunctions. So "these terms and those" is their cross product,
and the negation is the product of each term's negated requirements. The operators have the meaning
of k8s.io/component-helpers `scheduling/corev1/nodeaffinity` (v1.36): an empty term matches
nothing, NotIn and DoesNotExist match if the label is absent, Gt and Lt need an integer.

`off` and `rather_off` keep a pod off nodes in the terms of their label ``kubernetes.io/hostname``:
Karpenter ignores pods with ``matchFields``, which would name the nodes themselves.
"""

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, TypeAlias

import msgspec

from gpuspawner.offers.vendors import HOSTNAME

_LISTS = ("matchExpressions", "matchFields")
_OPPOSITE = {"In": "NotIn", "NotIn": "In", "Exists": "DoesNotExist", "DoesNotExist": "Exists"}


class TermRequirement(msgspec.Struct, frozen=True):
    """One requirement of a term.

    `among` is the list that contains it, `matchExpressions` or `matchFields`; `key` is the key of a
    label or the name of a field.
    """

    among: str
    key: str
    operator: str
    values: tuple[str, ...] = ()


Term: TypeAlias = tuple[TermRequirement, ...]
Terms: TypeAlias = tuple[Term, ...]

NEVER: Terms = ((),)
"""Matches no node, because an empty term matches none."""


def read(terms: Iterable[Any]) -> Terms:
    """Return terms that were read from the API's form."""
    return tuple(
        tuple(
            TermRequirement(among, line["key"], line["operator"], tuple(line.get("values") or ()))
            for among in _LISTS
            for line in term.get(among) or ()
        )
        for term in terms
    )


def write(terms: Terms) -> list[dict[str, Any]]:
    """Return terms in the API's form."""
    return [
        {
            among: [_line(requirement) for requirement in term if requirement.among == among]
            for among in _LISTS
            if any(requirement.among == among for requirement in term)
        }
        for term in terms
    ]


def from_labels(labels: Mapping[str, str]) -> Terms:
    """Return the single term that means the same as a node selector."""
    return (tuple(TermRequirement("matchExpressions", k, "In", (v,)) for k, v in labels.items()),)


def both(one: Terms, other: Terms) -> Terms:
    """Return terms that a node matches if and only if it matches both lists."""
    pairs = product((t for t in one if t), (t for t in other if t))
    return _shortest(tuple(dict.fromkeys(a + b)) for a, b in pairs) or NEVER


def neither(terms: Terms) -> Terms:
    """Return terms that a node matches if and only if it matches none of *terms*.

    *terms* must not be `NEVER`. There is one exception, on the safe side: a node whose label isn't
    an integer matches neither Gt nor Lt, nor their negation here.
    """
    every, *others = (_negated(term) for term in terms if term)
    for negated in others:
        every = both(every, negated)
    return every


def _negated(term: Term) -> Terms:
    return _shortest((opposite,) for line in term for opposite in _opposites(line))


def _opposites(line: TermRequirement) -> Iterable[TermRequirement]:
    if line.operator in _OPPOSITE:
        yield TermRequirement(line.among, line.key, _OPPOSITE[line.operator], line.values)
        return
    bound = int(line.values[0])
    operator, next_to = ("Lt", bound + 1) if line.operator == "Gt" else ("Gt", bound - 1)
    yield TermRequirement(line.among, line.key, operator, (str(next_to),))
    yield TermRequirement(line.among, line.key, "DoesNotExist")


def _shortest(terms: Iterable[Term]) -> Terms:
    """Drop each term that contains all requirements of another one, and more.

    This keeps products small, and makes `both` give the same list when applied twice.
    """
    found: dict[frozenset[TermRequirement], Term] = {}
    for term in terms:
        found.setdefault(frozenset(term), term)
    return tuple(term for one, term in found.items() if not any(other < one for other in found))


def _line(requirement: TermRequirement) -> dict[str, Any]:
    line: dict[str, Any] = {"key": requirement.key, "operator": requirement.operator}
    return {**line, "values": list(requirement.values)} if requirement.values else line


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_MOST = 100
"""The highest weight of a preference."""


def require(spec: dict[str, Any], terms: Terms) -> None:
    """Let a pod run only on nodes that match these terms too; change only *spec* itself."""
    affinity = spec["affinity"] = dict(spec.get("affinity") or {})
    node = affinity["nodeAffinity"] = dict(affinity.get("nodeAffinity") or {})
    required = node.get(_REQUIRED)
    if required is not None:
        terms = both(read(required["nodeSelectorTerms"]), terms)
    node[_REQUIRED] = {"nodeSelectorTerms": write(terms)}


def off(pod: Mapping[str, Any], hostnames: Iterable[str]) -> dict[str, Any]:
    """Return a pod that no scheduler puts on these nodes."""
    spec = dict(pod["spec"])
    require(spec, _none_of(hostnames))
    return {**pod, "spec": spec}


def rather_off(pod: Mapping[str, Any], hostnames: Iterable[str]) -> dict[str, Any]:
    """Return a pod that schedulers put on these nodes only if there are no others."""
    spec = pod["spec"]
    affinity = spec.get("affinity") or {}
    node = affinity.get("nodeAffinity") or {}
    [preference] = write(_none_of(hostnames))
    preferred = [*(node.get(_PREFERRED) or ()), {"weight": _MOST, "preference": preference}]
    affinity = {**affinity, "nodeAffinity": {**node, _PREFERRED: preferred}}
    return {**pod, "spec": {**spec, "affinity": affinity}}


def _none_of(hostnames: Iterable[str]) -> Terms:
    return ((TermRequirement("matchExpressions", HOSTNAME, "NotIn", tuple(hostnames)),),)
