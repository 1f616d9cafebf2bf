"""Accelerators that gpuspawner discovers from nodes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.offers.discovery import discover, note
from gpuspawner.offers.shapes import thaw
from gpuspawner.scheduling.node_affinity import node_choice, selecting
from gpuspawner.scheduling.state import ClusterState

GFD = "nvidia.com/gpu.product"
GKE = "cloud.google.com/gke-accelerator"
KARPENTER = "karpenter.k8s.aws/instance"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
PRESENT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


def node(name, labels, gpus, taints=(), capacity=None):
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": list(taints)},
        "status": {"allocatable": gpus, "capacity": capacity or gpus},
    }


def gpus(name, labels, amount="1", **more):
    return node(name, labels, {"nvidia.com/gpu": amount}, **more)


def found(*nodes, classes=()):
    return discover(ClusterState.from_objects(nodes=nodes, pods=[]), classes)


NVIDIA = "nvidia.com/gpu"
TPU = {
    "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
    "cloud.google.com/gke-tpu-topology": "2x4",
}


@pytest.mark.parametrize(
    ("labels", "resource", "key", "name"),
    [
        ({GFD: "NVIDIA-A100-80GB-PCIe"}, NVIDIA, "a100-80gb-pcie", "NVIDIA A100 80 GB PCIe"),
        ({GFD: "Tesla-T4"}, NVIDIA, "tesla-t4", "NVIDIA Tesla T4"),
        ({GKE: "nvidia-tesla-k80"}, NVIDIA, "tesla-k80", "NVIDIA Tesla K80"),
        ({GKE: "nvidia-h100-mega-80gb"}, NVIDIA, "h100-mega-80gb", "NVIDIA H100 Mega 80 GB"),
        ({f"{KARPENTER}-gpu-name": "l40s"}, NVIDIA, "l40s", "NVIDIA L40S"),
        ({INSTANCE_TYPE: "p3.8xlarge"}, NVIDIA, "p3-8xlarge", "NVIDIA GPU (p3.8xlarge)"),
        ({"karpenter.azure.com/sku-gpu-name": "A100"}, NVIDIA, "a100", "NVIDIA A100"),
        ({"gpu.nvidia.com/model": "H100_80GB"}, NVIDIA, "h100-80gb", "NVIDIA H100 80 GB"),
        ({"gpu.intel.com/product": "Max_1100"}, "gpu.intel.com/i915", "max-1100", "Intel Max 1100"),
        ({}, "habana.ai/gaudi", "gpu", "Intel Gaudi"),
        (TPU, "google.com/tpu", "tpu-v5-lite-podslice", "Google TPU V5 Lite Podslice"),
        (
            {f"{KARPENTER}-accelerator-name": "inferentia2"},
            "aws.amazon.com/neuron",
            "inferentia2",
            "AWS Inferentia2",
        ),
        (
            {f"{KARPENTER}-gpu-name": "radeon-pro-v520"},
            "amd.com/gpu",
            "radeon-pro-v520",
            "AMD Radeon PRO V520",
        ),
    ],
)
def test_devices_of_each_vendor_have_a_name_by_their_label(labels, resource, key, name):
    taint = {"key": resource, "value": "present", "effect": "NoSchedule"}
    (one,) = found(node("n", labels, {resource: "4"}, [taint]))

    assert (one.key, one.display_name, one.resource) == (key, name, resource)
    assert one.node_selector == labels
    assert one.tolerations == ({"key": resource, "operator": "Exists", "effect": "NoSchedule"},)


def test_nodes_without_labels_are_selected_by_missing_labels():
    (one,) = found(gpus("n", {}))

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
    none = {**labels, "nvidia.com/gpu.memory": "0"}
    assert found(node("a", none, amounts))[0].description == ""


def test_counts_end_at_the_largest_node_and_not_at_the_sum():
    (one,) = found(gpus("a", {GFD: "Tesla-T4"}, "2"), gpus("b", {GFD: "Tesla-T4"}))

    assert one.counts == (1, 2)


def test_a_node_with_unhealthy_gpus_is_discovered():
    unhealthy = gpus("a", {GFD: "Tesla-T4"}, "0", capacity={"nvidia.com/gpu": "2"})

    assert found(unhealthy)[0].counts == (1,)


def test_mig_slices_are_accelerators_of_their_own():
    amounts = {"nvidia.com/gpu": "1", "nvidia.com/mig-1g.5gb": "3"}
    whole, small = found(node("a", {GFD: "NVIDIA-A100-SXM4-40GB"}, amounts))

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
    reserving = ("sku", "gpu"), ("sku", "other"), ("team", "physics")
    taints = [{"key": k, "value": v, "effect": "NoSchedule"} for k, v in reserving]
    not_ready = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}
    (one,) = found(gpus("a", {GKE: "nvidia-l4"}, taints=[PRESENT, *taints, not_ready]))

    assert one.tolerations == (
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"},
    )


def test_nodes_without_gpus_give_no_accelerators():
    none = found(node("a", {GFD: "Tesla-T4"}, {"cpu": "4"}))

    assert none == ()
    assert "no GPU" in note(none)


def test_the_note_says_that_empty_pools_cannot_be_seen():
    assert note(found(gpus("a", {GFD: "Tesla-T4"}, "4"))) == (
        "GPUSpawner.accelerators is empty, so the nodes' labels were read. Found: tesla-t4 "
        "(up to 4 a node). A pool that has no node now cannot be seen: configure it."
    )


def test_models_with_the_same_key_get_distinct_keys():
    old, new = found(gpus("a", {GFD: "Tesla-T4"}), gpus("b", {GKE: "nvidia-tesla-t4"}))

    assert (old.key, new.key) == ("tesla-t4", "tesla-t4-2")
    assert old.node_selector != new.node_selector


def counted(*nodes, classes=()):
    return {it.display_name: it for it in found(*nodes, classes=classes)}


def places(accelerator, *nodes):
    """Name the nodes on which kube-scheduler would place a server with the accelerator."""
    terms = thaw(accelerator.node_affinity)
    choice = node_choice(selecting(dict(accelerator.node_selector), terms))
    return {
        it["metadata"]["name"]
        for it in nodes
        if choice.matches(it["metadata"]["labels"], it["metadata"]["name"])
    }


SLICED = {GKE: "nvidia-tesla-a100", "cloud.google.com/gke-gpu-partition-size": "1g.5gb"}
SHARED = {GKE: "nvidia-tesla-t4", "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing"}
GKE_WHOLE = gpus("whole", {GKE: "nvidia-tesla-a100"}, taints=[PRESENT])
GKE_SLICED = gpus("sliced", SLICED, "7", taints=[PRESENT])
GKE_SHARED = gpus("shared", SHARED, "4", taints=[PRESENT])


def test_on_gke_whole_gpus_slices_and_shares_are_three_offers_on_nodes_of_their_own():
    nodes = GKE_WHOLE, GKE_SLICED, GKE_SHARED
    by_name = counted(*nodes)
    whole = by_name["NVIDIA Tesla A100"]
    part = by_name["NVIDIA Tesla A100 MIG 1g.5gb"]
    share = by_name["NVIDIA Tesla T4, shared"]

    assert len(by_name) == 3
    assert (whole.counts, whole.is_slice, whole.is_shared) == ((1,), False, False)
    assert (part.counts, part.is_slice, part.is_shared) == ((1, 2, 3, 4, 5, 6, 7), True, False)
    assert (share.counts, share.is_slice, share.is_shared) == ((1,), False, True)
    assert [places(it, *nodes) for it in (whole, part, share)] == [
        {"whole"},
        {"sliced"},
        {"shared"},
    ]
    assert {it.key for it in by_name.values()} == {
        "tesla-a100", "tesla-a100-mig-1g-5gb", "tesla-t4-shared"
    }  # fmt: skip


def test_a_slice_of_gke_that_pods_share_is_both():
    both = {**SLICED, "cloud.google.com/gke-gpu-sharing-strategy": "mps"}
    (one,) = found(gpus("n", both, "21"))

    assert (one.display_name, one.counts) == ("NVIDIA Tesla A100 MIG 1g.5gb, shared", (1,))
    assert (one.is_slice, one.is_shared) == (True, True)


def test_a_slice_with_the_single_strategy_is_marked_as_one():
    (one,) = found(gpus("n", {GFD: "A100-SXM4-40GB-MIG-1g.5gb"}, "7"))

    assert (one.key, one.is_slice) == ("a100-sxm4-40gb-mig-1g-5gb", True)
    assert one.display_name == "NVIDIA A100 SXM4 40 GB MIG 1g.5gb"
    assert one.counts[-1] == 7


def amd(name, product, vram, prefix="amd.com/gpu", **labels):
    labels = {f"{prefix}.product-name": product, f"{prefix}.vram": vram, **labels}
    return node(name, labels, {"amd.com/gpu": "8"})


def test_amds_models_have_their_names_and_their_memory():
    old = amd("b", "AMD_Instinct_MI210", "64G", "beta.amd.com/gpu")
    by_name = counted(amd("a", "AMD_Instinct_MI300X_OAM", "192G"), old)

    assert {name: it.description for name, it in by_name.items()} == {
        "AMD Instinct MI300X OAM": "192 GiB of memory",
        "AMD Instinct MI210": "64 GiB of memory",
    }


def test_amds_partitions_are_told_from_whole_gpus():
    label = "amd.com/compute-memory-partition"
    nodes = [
        amd("whole", "AMD_Instinct_MI300X_OAM", "192G", **{label: "spx_nps1"}),
        amd("parts", "AMD_Instinct_MI300X_OAM", "192G", **{label: "cpx_nps4"}),
        node("mixed", {"amd.com/gpu.product-name": "MI300X"}, {"amd.com/cpx_nps4": "64"}),
    ]
    by_name = counted(*nodes)

    assert by_name.keys() == {
        "AMD Instinct MI300X OAM", "AMD Instinct MI300X OAM CPX NPS4", "AMD MI300X CPX NPS4"
    }  # fmt: skip
    assert places(by_name["AMD Instinct MI300X OAM"], *nodes) == {"whole"}
    assert places(by_name["AMD Instinct MI300X OAM CPX NPS4"], *nodes) == {"parts"}
    assert by_name["AMD Instinct MI300X OAM CPX NPS4"].description == ""


def test_chips_that_neuron_counts_in_several_ways_are_offered_once():
    amounts = {f"aws.amazon.com/{it}": "16" for it in ("neuron", "neurondevice", "neuroncore")}

    assert len(found(node("n", {}, amounts))) == 1


def rancher(name, gpus, cpu="16", type_="k3s", arguments='["agent"]'):
    labels = {"kubernetes.io/hostname": name, INSTANCE_TYPE: type_}
    made = node(name, labels, {"nvidia.com/gpu": gpus, "cpu": cpu, "memory": "64Gi"})
    made["metadata"]["annotations"] = {f"{type_}.io/node-args": arguments}
    return made


@pytest.mark.parametrize("type_", ["k3s", "rke2"])
def test_unlike_machines_without_a_label_are_named_after_themselves(type_):
    nodes = [rancher(*it, type_=type_) for it in (("small", "1"), ("big-1", "8"), ("big-2", "8"))]
    by_name = counted(*nodes)

    assert by_name.keys() == {"NVIDIA GPU (small)", "NVIDIA GPU (big-1 … big-2)"}
    assert by_name["NVIDIA GPU (small)"].counts == (1,)
    assert places(by_name["NVIDIA GPU (small)"], *nodes) == {"small"}
    assert places(by_name["NVIDIA GPU (big-1 … big-2)"], *nodes) == {"big-1", "big-2"}


def test_equal_machines_without_a_label_are_one_offer():
    nodes = [rancher("a", "2"), rancher("b", "2")]
    by_name = counted(*nodes)

    assert by_name.keys() == {"NVIDIA GPU"}
    assert by_name["NVIDIA GPU"].key == "gpu"
    assert places(by_name["NVIDIA GPU"], *nodes) == {"a", "b"}


@pytest.mark.parametrize("label", [GFD, INSTANCE_TYPE])
def test_servers_can_run_on_a_node_whose_label_is_empty_and_on_no_other(label):
    nodes = gpus("empty", {label: ""}), gpus("bare", {})
    here = found(*nodes)

    assert [one.display_name for one in here] == ["NVIDIA GPU", "NVIDIA GPU"]
    assert sorted(places(one, *nodes) for one in here) == [{"bare"}, {"empty"}]


@pytest.mark.parametrize(
    ("classes", "arguments", "given"),
    [
        (["nvidia"], '["server","--node-name","x"]', "nvidia"),
        (["nvidia"], '["agent","--default-runtime","nvidia"]', None),
        (["nvidia"], '["agent","--default-runtime=nvidia"]', None),
        (["kata"], '["server"]', None),
    ],
)
def test_on_k3s_and_rke2_nvidias_gpus_get_the_runtime_class_unless_it_is_the_default(
    classes, arguments, given
):
    nodes = [rancher("a", "1", arguments=arguments), rancher("b", "2", "8", "rke2", arguments)]

    assert {it.runtime_class for it in counted(*nodes, classes=classes).values()} == {given}


def test_elsewhere_no_gpu_gets_a_runtime_class():
    nodes = [GKE_WHOLE, amd("a", "AMD_Instinct_MI210", "64G")]

    assert {it.runtime_class for it in counted(*nodes, classes=["nvidia"]).values()} == {None}


def test_eks_auto_modes_label_gives_the_memory_too():
    labels = {"eks.amazonaws.com/instance-gpu-name": "l4"}
    labels["eks.amazonaws.com/instance-gpu-memory"] = "22888"
    (one,) = found(gpus("n", labels))

    assert (one.display_name, one.description) == ("NVIDIA L4", "22.4 GiB of memory")


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
