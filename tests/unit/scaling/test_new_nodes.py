"""A pod without what binds it to a zone."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import to_builtins

from gpuspawner.scaling.new_nodes import without_place
from tests.unit.makers.outlooks import pod

pytestmark = pytest.mark.usefixtures("clock")

ZONE = "topology.kubernetes.io/zone"
NAME = "kubernetes.io/hostname"


def term(*keys: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": it, "operator": "In", "values": ["a"]} for it in keys]}


def nodes(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def kept(**spec: Any) -> dict[str, Any]:
    """Return the rules about other pods and nodes that are left, as plain objects."""
    found: dict[str, Any] = to_builtins(without_place(pod(**spec)).spec.affinity)
    return found


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def test_selectors_of_zones_and_volumes_go_and_others_stay() -> None:
    volume = {"name": "home", "persistentVolumeClaim": {"claimName": "c"}}
    spec = without_place(pod(selector={ZONE: "a", "gpu": "t4"}, volumes=[volume])).spec

    assert (spec.node_selector, spec.volumes, spec.affinity) == ({"gpu": "t4"}, None, None)


def test_of_a_term_only_the_expressions_about_zones_go() -> None:
    [left] = kept(affinity=nodes(term(ZONE, "gpu")))["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]

    assert [it["key"] for it in left["matchExpressions"]] == ["gpu"]


def test_a_term_about_zones_alone_leaves_no_requirement() -> None:
    assert kept(affinity=nodes(term(ZONE), term("gpu")))["nodeAffinity"].get(REQUIRED) is None


def test_an_empty_term_still_matches_nothing() -> None:
    [left] = kept(affinity=nodes({}))["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]

    assert not left.get("matchExpressions")


def test_rules_about_other_pods_in_the_zone_go_and_those_of_the_node_stay() -> None:
    both = [{"topologyKey": ZONE}, {"topologyKey": NAME}]
    rule = {REQUIRED: both}
    spread = [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **it} for it in both]
    affinity = {"podAffinity": rule, "podAntiAffinity": rule}
    spec = without_place(pod(affinity=affinity, topologySpreadConstraints=spread)).spec

    left = kept(affinity=affinity)
    assert [it["topologyKey"] for it in left["podAffinity"][REQUIRED]] == [NAME]
    assert [it["topologyKey"] for it in left["podAntiAffinity"][REQUIRED]] == [NAME]
    assert [it.topology_key for it in spec.topology_spread_constraints or ()] == [NAME]
