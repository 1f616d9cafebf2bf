"""What nodes betray of autoscalers that the hub can't see."""

from __future__ import annotations

import pytest

from gpuspawner.scaling.outlook import CannotScaleUp, MayScaleUp, Outlook, Source
from tests.unit.scaling.outlooks import Plain, autoscalers, node, outlook, pod, state

MAY = MayScaleUp(Source.NODES)
KARPENTERS = {"karpenter.sh/nodepool": "gpu"}
EKS = {"eks.amazonaws.com/nodegroup": "core"}
STATIC = {"metadata": {"name": "gpu"}, "spec": {"replicas": 1}}


def busy(name: str, labels: dict[str, str], provider: str = "") -> Plain:
    return node(name, 1, labels=labels, unschedulable=True, providerID=provider)


def look(*nodes: Plain, autoscaling: str = "detect", **objects: object) -> Outlook:
    known = objects.get("known") or autoscalers()
    return outlook(state(*nodes), pod(selector={}), objects=known, autoscaling=autoscaling)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "provider",
    ["", "k3s://n", "kind://docker/kind/n", "metal3://x", "baremetal://n"],
)
def test_machines_of_ones_own_do_not_grow(provider: str) -> None:
    assert look(busy("n", {}, provider)) == CannotScaleUp()


@pytest.mark.parametrize(
    "provider",
    ["aws:///z/i-1", "gce://p/z/n", "azure:///x", "openstack:///x", "ocid1.instance.oc1.x"],
)
def test_a_clouds_pools_may_grow(provider: str) -> None:
    assert look(busy("n", {}, provider)) == MAY


def test_labels_of_pools_are_signs() -> None:
    assert look(busy("n", EKS)) == MAY


def test_none_means_that_nothing_grows() -> None:
    assert look(busy("n", EKS), autoscaling="none") == CannotScaleUp()


def test_always_means_that_a_node_may_come() -> None:
    assert look(autoscaling="always") == MayScaleUp(Source.CONFIGURATION)


def test_karpenters_own_nodes_say_nothing_if_its_pools_are_known() -> None:
    assert isinstance(look(busy("n", KARPENTERS, "aws:///z/i-1")), CannotScaleUp)


def test_karpenters_nodes_are_signs_if_its_pools_may_not_be_listed() -> None:
    objects = autoscalers()
    objects.mark_unknown("NodePool")

    assert look(busy("n", KARPENTERS), known=objects) == MAY


def test_pools_that_may_not_be_listed_may_grow_without_any_node() -> None:
    objects = autoscalers()
    objects.mark_unknown("NodePool")

    assert look(busy("n", {}), known=objects) == MayScaleUp(Source.UNREAD)


@pytest.mark.parametrize("order", [1, -1])
def test_the_first_node_does_not_hide_the_signs_of_the_others(order: int) -> None:
    nodes = [busy("k", KARPENTERS), busy("m", EKS)][::order]
    objects = autoscalers((STATIC,))
    objects.mark_unknown("ConfigMap")

    assert look(*nodes, known=objects) == MAY


def test_karpenter_alone_is_known_to_be_alone() -> None:
    assert isinstance(look(busy("m", EKS), known=autoscalers((STATIC,))), CannotScaleUp)


def test_groups_that_are_known_leave_nothing_hidden() -> None:
    status = (
        "autoscalerStatus: Running\nnodeGroups:\n- name: core\n"
        "  health: {cloudProviderTarget: 1, maxSize: 1}\n"
    )
    nodes = [busy("core-1", {**EKS}, "aws:///z/i-1")]

    assert isinstance(look(*nodes, known=autoscalers(status=status)), CannotScaleUp)
