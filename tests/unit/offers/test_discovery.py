"""Accelerators that gpuspawner discovers from nodes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.offers.discovery import discover
from gpuspawner.scheduling.state import ClusterState

GFD = "nvidia.com/gpu.product"
GKE = "cloud.google.com/gke-accelerator"
PRESENT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


def node(name, labels, gpus, taints=(), capacity=None):
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": list(taints)},
        "status": {"allocatable": gpus, "capacity": capacity or gpus},
    }


def found(*nodes):
    return discover(ClusterState.from_objects(nodes=list(nodes), pods=[])).accelerators


@pytest.mark.parametrize(
    ("label", "value", "key", "name"),
    [
        (GFD, "NVIDIA-A100-80GB-PCIe", "a100-80gb-pcie", "NVIDIA A100 80 GB PCIe"),
        (GFD, "Tesla-T4", "tesla-t4", "NVIDIA Tesla T4"),
        (
            GFD,
            "A100-SXM4-40GB-MIG-1g.5gb",
            "a100-sxm4-40gb-mig-1g-5gb",
            "NVIDIA A100 SXM4 40 GB MIG 1g.5gb",
        ),
        (GKE, "nvidia-tesla-k80", "tesla-k80", "NVIDIA Tesla K80"),
        (GKE, "nvidia-h100-mega-80gb", "h100-mega-80gb", "NVIDIA H100 Mega 80 GB"),
        ("karpenter.k8s.aws/instance-gpu-name", "l40s", "l40s", "NVIDIA L40S"),
        ("node.kubernetes.io/instance-type", "p3.8xlarge", "p3-8xlarge", "NVIDIA GPU (p3.8xlarge)"),
    ],
)
def test_the_display_name_comes_from_the_label(label, value, key, name):
    (one,) = found(node("n", {label: value}, {"nvidia.com/gpu": "1"}))

    assert (one.key, one.display_name) == (key, name)
    assert one.node_selector == {label: value}


def test_nodes_without_labels_are_selected_by_missing_labels():
    (one,) = found(node("n", {}, {"nvidia.com/gpu": "1"}))

    assert (one.key, one.display_name, one.node_selector) == ("gpu", "NVIDIA GPU", {})
    assert {"key": GFD, "operator": "DoesNotExist"} in one.node_affinity[0]["matchExpressions"]


def test_the_description_gives_the_memory_if_all_nodes_agree():
    labels = {
        GFD: "Tesla-T4",
        "nvidia.com/gpu.memory": "15360",
        "nvidia.com/mig-1g.5gb.memory": "4864",
    }
    amounts = {"nvidia.com/gpu": "1", "nvidia.com/mig-1g.5gb": "1"}
    whole, part = found(node("a", labels, amounts))

    assert (whole.description, part.description) == ("15 GiB of memory", "4.75 GiB of memory")
    other = {**labels, "nvidia.com/gpu.memory": "x"}
    assert found(node("a", labels, amounts), node("b", other, amounts))[0].description == ""


def test_counts_end_at_the_largest_node_and_not_at_the_sum():
    (one,) = found(
        node("a", {GFD: "Tesla-T4"}, {"nvidia.com/gpu": "2"}),
        node("b", {GFD: "Tesla-T4"}, {"nvidia.com/gpu": "1"}),
    )

    assert one.counts == (1, 2)


def test_a_node_with_unhealthy_gpus_is_discovered():
    unhealthy = node(
        "a", {GFD: "Tesla-T4"}, {"nvidia.com/gpu": "0"}, capacity={"nvidia.com/gpu": "2"}
    )

    assert found(unhealthy)[0].counts == (1,)


def test_mig_slices_are_accelerators_of_their_own():
    labels = {GFD: "NVIDIA-A100-SXM4-40GB"}
    whole, small = found(
        node("a", labels, {"nvidia.com/gpu": "1", "nvidia.com/mig-1g.5gb": "3"}),
    )

    assert (whole.key, whole.resource) == ("a100-sxm4-40gb", "nvidia.com/gpu")
    assert (small.key, small.resource) == ("a100-sxm4-40gb-mig-1g-5gb", "nvidia.com/mig-1g.5gb")
    assert small.display_name == "NVIDIA A100 SXM4 40 GB MIG 1g.5gb"
    assert small.counts == (1, 2, 3)


@pytest.mark.parametrize(
    ("product", "resource"),
    [("Tesla-T4-SHARED", "nvidia.com/gpu"), ("Tesla-T4", "nvidia.com/gpu.shared")],
)
def test_a_shared_gpu_is_named_shared_and_has_the_count_one(product, resource):
    (one,) = found(node("a", {GFD: product}, {resource: "10"}))

    assert (one.key, one.display_name) == ("tesla-t4-shared", "NVIDIA Tesla T4, shared")
    assert one.counts == (1,)
    assert one.is_shared


def test_only_taints_that_reserve_gpu_nodes_are_tolerated():
    (one,) = found(
        node(
            "a",
            {GKE: "nvidia-l4"},
            {"nvidia.com/gpu": "1"},
            [
                PRESENT,
                {"key": "sku", "value": "gpu", "effect": "NoSchedule"},
                {"key": "sku", "value": "other", "effect": "NoSchedule"},
                {"key": "team", "value": "physics", "effect": "NoSchedule"},
                {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"},
            ],
        )
    )

    assert one.tolerations == (
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"},
    )


def test_nodes_without_gpus_give_no_accelerators():
    state = ClusterState.from_objects(nodes=[node("a", {GFD: "Tesla-T4"}, {"cpu": "4"})], pods=[])

    assert discover(state).accelerators == ()
    assert "no GPU" in discover(state).note


def test_the_note_says_that_empty_pools_cannot_be_seen():
    state = ClusterState.from_objects(nodes=[node("a", {GFD: "Tesla-T4"}, {"nvidia.com/gpu": "4"})])

    assert discover(state).note == (
        "GPUSpawner.accelerators is empty, so the nodes' labels were read. Found: tesla-t4 "
        "(up to 4 a node). A pool that has no node now cannot be seen: configure it."
    )


def test_models_with_the_same_key_get_distinct_keys():
    old, new = found(
        node("a", {GFD: "Tesla-T4"}, {"nvidia.com/gpu": "1"}),
        node("b", {GKE: "nvidia-tesla-t4"}, {"nvidia.com/gpu": "1"}),
    )

    assert (old.key, new.key) == ("tesla-t4", "tesla-t4-2")
    assert old.node_selector != new.node_selector


labels = st.dictionaries(st.sampled_from([GFD, GKE, "x"]), st.text(max_size=20))
amounts = st.dictionaries(
    st.sampled_from(
        ["nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "nvidia.com/mig-\u2603", "amd.com/gpu"]
    ),
    st.sampled_from(["0", "1", "8", "-1", "x", "1e18"]),
)


@given(st.lists(st.tuples(labels, amounts), max_size=4))
def test_keys_are_plain_and_distinct_and_do_not_depend_on_the_order(drawn):
    nodes = [node(f"n{number}", *one) for number, one in enumerate(drawn)]
    here = found(*nodes)

    assert here == found(*reversed(nodes))
    assert len({one.key for one in here}) == len(here)
    assert all(one.key.isascii() and 0 < len(one.key) <= 63 for one in here)
    assert all(len(one.counts) <= 64 for one in here)
