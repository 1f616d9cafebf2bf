"""What the page about clouds says, on nodes with the labels, resources and taints of each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gpuspawner.offers.discovery import discover
from gpuspawner.scaling.cloud_errors import why_failed
from gpuspawner.scaling.outlook import WhyNoNode
from gpuspawner.scaling.unseen_autoscalers import signs
from gpuspawner.scheduling import ClusterState

PAGE = (Path(__file__).parents[2] / "docs/reference/clouds.md").read_text()
GPU, TYPE = "nvidia.com/gpu", "node.kubernetes.io/instance-type"
GKE = "cloud.google.com/gke-"
POOL = {f"{GKE}nodepool": "gpu"}
A100, MI300X = "NVIDIA-A100-SXM4-40GB", "AMD_Instinct_MI300X_OAM"
KARPENTER = {"karpenter.sh/nodepool": "gpu"}


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip()[1:-1].split("|")]


def rows(heading: str) -> list[list[str]]:
    text = PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return [cells(line) for line in text.splitlines() if line.startswith("| ")][2:]


# The labels, the resource and its amount, and the taint.
NODES: dict[str, tuple[dict[str, str], str, int, str]] = {
    "GKE, one A100": ({**POOL, f"{GKE}accelerator": "nvidia-tesla-a100"}, GPU, 1, f"{GPU}=present"),
    "GKE, an A100 in sevenths": (
        {**POOL, f"{GKE}accelerator": "nvidia-tesla-a100", f"{GKE}gpu-partition-size": "1g.5gb"},
        GPU, 7, f"{GPU}=present"),
    "GKE, a T4 for four, by time": (
        {**POOL, f"{GKE}accelerator": "nvidia-tesla-t4",
         f"{GKE}gpu-sharing-strategy": "time-sharing", f"{GKE}max-shared-clients-per-gpu": "4"},
        GPU, 4, f"{GPU}=present"),
    "GKE, a TPU": (
        {**POOL, f"{GKE}tpu-accelerator": "tpu-v5-lite-podslice", f"{GKE}tpu-topology": "2x2"},
        "google.com/tpu", 4, "google.com/tpu=present"),
    "EKS, managed node group": (
        {"eks.amazonaws.com/nodegroup": "gpu", TYPE: "p3.8xlarge"}, GPU, 4, ""),
    "EKS with Karpenter": (
        {**KARPENTER, "karpenter.k8s.aws/instance-gpu-name": "a10g", TYPE: "g5.12xlarge"},
        GPU, 4, f"{GPU}=true"),
    "EKS with Karpenter, Neuron": (
        {**KARPENTER, "karpenter.k8s.aws/instance-accelerator-name": "inferentia2"},
        "aws.amazon.com/neuron", 1, "aws.amazon.com/neuron=true"),
    "EKS Auto Mode": (
        {**KARPENTER, "eks.amazonaws.com/instance-gpu-name": "l4", TYPE: "g6.xlarge"},
        GPU, 1, f"{GPU}=true"),
    "AKS, node pool": (
        {"kubernetes.azure.com/agentpool": "gpu", "kubernetes.azure.com/accelerator": "nvidia",
         TYPE: "Standard_NC4as_T4_v3"}, GPU, 1, "sku=gpu"),
    "AKS with node auto-provisioning": (
        {**KARPENTER, "karpenter.azure.com/sku-gpu-name": "T4", TYPE: "Standard_NC4as_T4_v3"},
        GPU, 1, "sku=gpu"),
    "OpenShift and own machines, GPU operator": (
        {f"{GPU}.product": "NVIDIA-A100-SXM4-80GB"}, GPU, 8, f"{GPU}="),
    "own machines, MIG single": ({f"{GPU}.product": f"{A100}-MIG-1g.5gb"}, GPU, 7, f"{GPU}="),
    "own machines, MIG mixed": (
        {f"{GPU}.product": A100}, "nvidia.com/mig-2g.10gb", 3, f"{GPU}="),
    "own machines, time slices": ({f"{GPU}.product": "Tesla-T4-SHARED"}, GPU, 10, f"{GPU}="),
    "own machines, MPS": (
        {f"{GPU}.product": "Tesla-T4-SHARED", f"{GPU}.sharing-strategy": "mps"},
        GPU, 10, f"{GPU}="),
    "own machines, AMD": ({"amd.com/gpu.product-name": MI300X}, "amd.com/gpu", 8, "amd.com/gpu="),
    "own machines, AMD partitions": (
        {"amd.com/gpu.product-name": MI300X, "amd.com/compute-memory-partition": "cpx_nps4"},
        "amd.com/gpu", 64, "amd.com/gpu="),
    "own machines, Gaudi": ({}, "habana.ai/gaudi", 8, ""),
    "k3s, RKE2": ({TYPE: "k3s"}, GPU, 2, ""),
}  # fmt: skip


def state(name: str, **metadata: Any) -> ClusterState:
    labels, resource, amount, taint = NODES[name]
    key, _, value = taint.partition("=")
    taints = [{"key": key, "value": value, "effect": "NoSchedule"}] if key else []
    amounts = {resource: str(amount)}
    node = {
        "metadata": {"name": "n", "labels": labels, **metadata},
        "spec": {"taints": taints},
        "status": {"allocatable": amounts, "capacity": amounts},
    }
    return ClusterState.from_objects(nodes=[node], pods=[])


def as_written(taint: Any) -> str:
    value = f"={taint['value']}" if "value" in taint else ""
    return f"`{taint['key']}{value}`"


@pytest.mark.parametrize("row", rows("What is discovered"), ids=lambda row: row[0])
def test_each_row_is_what_the_hub_discovers(row: list[str]) -> None:
    name, _, discovered, counts, marked, *_ = row

    [found] = discover(state(name))

    marks = ["slice"] * found.is_slice + ["share"] * found.is_shared
    last = found.counts[-1]
    assert found.display_name == discovered
    assert counts == (f"1 to {last}" if last > 1 else "1")
    assert marked == (" and ".join(marks) or "–")


def test_labels_and_taints_are_those_that_the_hub_reads() -> None:
    label = taint = ""
    for name, its, _, _, _, taints, _ in rows("What is discovered"):
        [found] = discover(state(name))
        label, taint = its or label, taints or taint
        assert label.split(",")[0] in ({f"`{key}`" for key in found.node_selector} or {"–"})
        assert {taint} == ({as_written(it) for it in found.tolerations} or {"–"})


GROWING = {
    "GKE, with or without node auto-provisioning, and Autopilot": ["GKE, one A100"],
    "EKS, managed node group": ["EKS, managed node group"],
    "EKS with Karpenter, EKS Auto Mode, AKS with node auto-provisioning": [
        "EKS with Karpenter", "EKS Auto Mode", "AKS with node auto-provisioning"],
    "AKS, node pool": ["AKS, node pool"],
    "own machines, k3s, RKE2": ["own machines, time slices", "k3s, RKE2"],
}  # fmt: skip


@pytest.mark.parametrize("row", rows("Whether a node can come"), ids=lambda row: row[0])
def test_who_adds_nodes_is_what_the_nodes_show(row: list[str]) -> None:
    name, who, by_itself = row
    machine = {"annotations": {"machine.openshift.io/machine": "x/y"}}
    openshift = [state("OpenShift and own machines, GPU operator", **machine)]
    states = [state(it) for it in GROWING[name]] if name in GROWING else openshift

    for it in states:
        shown = signs(it.nodes.values())
        assert {sign.source.value for sign in shown} == (set() if who == "nobody" else {who})
        assert any(sign.makes_pools for sign in shown) is (by_itself == "perhaps")


@pytest.mark.parametrize(
    "row", rows("What a cloud says when it gives no machine"), ids=lambda it: it[0]
)
def test_quotas_and_stock_outs_are_told_apart_as_the_page_says(row: list[str]) -> None:
    _, quotas, stock_outs, _ = row

    for texts, why in ((quotas, WhyNoNode.QUOTA), (stock_outs, WhyNoNode.STOCK_OUT)):
        for text in re.findall("`(.+?)`", texts):
            assert why_failed(text) is why_failed("", f"an error: {text}.") is why


def test_what_is_neither_is_told_apart_too() -> None:
    text = PAGE.split("The hub also recognizes")[1].split("\n\n")[0]

    found = {why_failed(it) for it in re.findall("`(.+?)`", text)}

    assert found == {WhyNoNode.LIMIT, WhyNoNode.REFUSED}
