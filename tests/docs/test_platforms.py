"""The how-tos for clouds and for parts of GPUs: what they configure fits nodes like theirs."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
import yaml
from traitlets.config import Config

from gpuspawner.kube.objects import convert
from gpuspawner.kube.pods import Pod
from gpuspawner.messages.availability import sharing
from gpuspawner.offers.discovery import discover
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.manifest import apply
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.types import Accelerator
from gpuspawner.scaling.outlook import CannotScaleUp, CanScaleUp, MayScaleUp, Source
from gpuspawner.scheduling import ClusterState, Outcome, evaluate
from tests.docs.platforms import BLOCKS, NAMES, OF_THE_CHART, PAGES, ROOT, objects
from tests.docs.test_clouds import KARPENTER, NODES
from tests.helm.chart import Values, merged, read
from tests.unit.makers.outlooks import autoscalers, node, outlook, plain_pod, state

GPU, TYPE, PRODUCT = "nvidia.com/gpu", "node.kubernetes.io/instance-type", "nvidia.com/gpu.product"
A100 = "NVIDIA-A100-SXM4-40GB"
L4 = {"cloud.google.com/gke-accelerator": "nvidia-l4"}
EXAMPLES = {"gke": "gke", "eks": "eks", "aks": "aks", "gpu-operator": "on-premises"}
"""The values files that the pages change."""
CORE = state(node("core", 0, labels={}))
"""A cluster that has no GPU yet."""

# The labels, the resource and its amount, and the taint, as in test_clouds.
Described = tuple[dict[str, str], str, int, str]
NODES_OF: dict[str, dict[str, list[Described]]] = {
    "gke": {"l4": [({**L4, "cloud.google.com/gke-nodepool": "l4"}, GPU, 1, f"{GPU}=present")]},
    "eks": {
        "l4": [
            ({"eks.amazonaws.com/nodegroup": "l4", TYPE: "g6.xlarge"}, GPU, 1, f"{GPU}=true"),
            ({**KARPENTER, "karpenter.k8s.aws/instance-gpu-name": "l4", TYPE: "g6.2xlarge"},
             GPU, 1, f"{GPU}=true"),
            NODES["EKS Auto Mode"],
        ]
    },
    "aks": {"t4": [NODES["AKS with node auto-provisioning"]]},
    "gpu-operator": {"a100": [NODES["OpenShift and own machines, GPU operator"]]},
    "mig": {
        "a100": [({PRODUCT: A100}, GPU, 8, f"{GPU}=")],
        "a100-1g.5gb": [({PRODUCT: A100}, "nvidia.com/mig-1g.5gb", 7, f"{GPU}=")],
    },
    "time-slices": {"t4-shared": [({PRODUCT: "Tesla-T4"}, f"{GPU}.shared", 4, f"{GPU}=")]},
}  # fmt: skip
"""The nodes of each accelerator that a page configures."""


def without_nulls(values: Values) -> Values:
    """Remove what a null removes, as helm does."""
    return {
        key: without_nulls(it) if isinstance(it, dict) else it
        for key, it in values.items()
        if it is not None
    }


def configured(name: str) -> dict[str, Accelerator]:
    """Return the accelerators of a hub that does what a page says."""
    c = Config()
    for code in re.findall(r"^```python\n(.*?)^```", PAGES[name], re.S | re.M):
        exec(code, {"c": c})
    offered = copy.deepcopy(dict(c.GPUSpawner.get("accelerators", {})))
    if name in EXAMPLES:
        mine = [it for it in BLOCKS[name] if "kind" not in it]
        values = without_nulls(merged(read(EXAMPLES[name]), *mine))
        offered = values["hub"]["config"]["GPUSpawner"]["accelerators"]
    return dict(Offers.parse(accelerators=offered).accelerators)


def described(labels: dict[str, str], resource: str, amount: int, taint: str) -> dict[str, Any]:
    key, _, value = taint.partition("=")
    reserved = {"key": key, "value": value, "effect": "NoSchedule"}
    made = node("n", 0, labels=labels, taints=[reserved])
    for amounts in (made["status"]["allocatable"], made["status"]["capacity"]):
        amounts[resource] = str(amount)
    return made


def renamed(pool: Values, old: str, new: str) -> Values:
    made: Values = yaml.safe_load(yaml.safe_dump(pool).replace(old, new))
    return made


def manifest(accelerator: Accelerator) -> dict[str, Any]:
    return apply(plain_pod("jupyter-ann", 0, selector={}), Grant(accelerator, gpus=1))


def server(accelerator: Accelerator) -> Pod:
    asked = convert("Pod", manifest(accelerator))
    assert isinstance(asked, Pod)
    return asked


@pytest.mark.parametrize("name", NAMES)
def test_a_page_says_that_nobody_has_seen_it_and_names_tests_that_exist(name: str) -> None:
    _, box = PAGES[name].split("\n:::{admonition} Seen, and only read\n")
    box, _ = box.split("\n:::\n")

    assert "Nobody has seen" in " ".join(box.split())
    tests = re.findall(r"`(tests/\S+?\.py)`", box)
    assert tests
    assert [it for it in tests if not (ROOT / it).exists()] == []


@pytest.mark.parametrize("name", NODES_OF)
def test_the_accelerators_of_a_page_fit_their_nodes_and_no_others(name: str) -> None:
    here = configured(name)

    assert here.keys() == NODES_OF[name].keys()
    for key, accelerator in here.items():
        for of, nodes in NODES_OF[name].items():
            for each in nodes:
                known = ClusterState.from_objects(nodes=[described(*each)], pods=[])
                fits = evaluate(known, manifest(accelerator)).outcome == Outcome.FITS
                assert fits is (key == of), (key, of)


@pytest.mark.parametrize("name", sorted(set(NAMES) - NODES_OF.keys()))
def test_no_page_with_accelerators_is_left_out(name: str) -> None:
    assert "accelerators:" not in PAGES[name]
    assert "c.GPUSpawner.accelerators" not in PAGES[name]


# As the page about EKS says, the label of Auto Mode only begins differently.
POOLS = [
    *((name, objects(name, "NodePool")[0]) for name in ("eks", "aks")),
    ("eks", renamed(objects("eks", "NodePool")[0], "karpenter.k8s.aws/", "eks.amazonaws.com/")),
]


@pytest.mark.parametrize(("name", "pool"), POOLS)
def test_a_nodepool_can_make_a_node_for_the_accelerator_beside_it(name: str, pool: Values) -> None:
    [accelerator] = configured(name).values()
    pools = autoscalers((pool,))

    found = outlook(CORE, server(accelerator), accelerator, pools, autoscaling="detect")

    assert isinstance(found, MayScaleUp)
    assert found.source is Source.KARPENTER


@pytest.mark.parametrize("name", ["eks", "aks"])
def test_no_nodepool_makes_a_node_for_a_label_that_only_feature_discovery_writes(name: str) -> None:
    product = Offers.parse(accelerators={"a": {"node_selector": {PRODUCT: "x"}}}).accelerators["a"]
    pools = autoscalers(tuple(objects(name, "NodePool")))

    found = outlook(CORE, server(product), product, pools, autoscaling="detect")

    assert isinstance(found, CannotScaleUp)


@pytest.mark.parametrize(
    ("there", "expected"), [(0, CanScaleUp), (3, CanScaleUp), (4, CannotScaleUp)]
)
def test_on_gke_a_declared_pool_is_a_new_machine_until_it_is_full(
    there: int, expected: type
) -> None:
    [accelerator] = configured("gke").values()
    labels, *_, taint = NODES_OF["gke"]["l4"][0]
    taints = [{"key": GPU, "value": taint.partition("=")[2], "effect": "NoSchedule"}]
    nodes = [node(f"n{it}", 1, labels=labels, taints=taints) for it in range(there)]
    pods = tuple(plain_pod(f"p{it}", selector={}, nodeName=f"n{it}") for it in range(there))

    full = state(*nodes, pods=pods)
    found = outlook(full, server(accelerator), accelerator, autoscaling="detect")

    assert isinstance(found, expected)


def test_eksctl_s_node_group_is_that_of_the_accelerator() -> None:
    [cluster] = objects("eks", "ClusterConfig")
    [group] = cluster["managedNodeGroups"]
    labels, _, _, taint = NODES_OF["eks"]["l4"][0]

    assert labels == {"eks.amazonaws.com/nodegroup": group["name"], TYPE: group["instanceType"]}
    assert [f"{it['key']}={it['value']}" for it in group["taints"]] == [taint]


def test_the_shares_of_the_config_map_are_what_the_accelerator_asks_for() -> None:
    [shares] = objects("time-slices", "ConfigMap")
    [plan] = map(yaml.safe_load, shares["data"].values())
    [resource] = plan["sharing"]["timeSlicing"]["resources"]
    [accelerator] = configured("time-slices").values()

    assert plan["sharing"]["timeSlicing"]["renameByDefault"]
    assert accelerator.resource == f"{resource['name']}.shared"
    assert accelerator.counts == (1,)
    assert f"device-plugin.config={next(iter(shares['data']))}\n" in PAGES["time-slices"]
    assert f'"config": {{"name": "{shares["metadata"]["name"]}"}}' in PAGES["time-slices"]


DISCOVERED = [
    ("aks", NODES["AKS, node pool"]),
    ("gpu-operator", NODES["OpenShift and own machines, GPU operator"]),
    ("mig", NODES["own machines, MIG single"]),
    ("mig", NODES["GKE, an A100 in sevenths"]),
    ("mig", NODES_OF["mig"]["a100-1g.5gb"][0]),
    ("time-slices", NODES["own machines, time slices"]),
    ("time-slices", NODES["GKE, a T4 for four, by time"]),
    ("time-slices", NODES_OF["time-slices"]["t4-shared"][0]),
]


@pytest.mark.parametrize(("name", "its_node"), DISCOVERED)
def test_names_on_a_page_are_those_that_the_hub_discovers(name: str, its_node: Described) -> None:
    known = ClusterState.from_objects(nodes=[described(*its_node)], pods=[])

    [found] = discover(known)

    assert f"*{found.display_name}*" in PAGES[name]


def test_the_form_says_of_a_slice_what_the_page_quotes() -> None:
    assert f"*{sharing(configured('mig')['a100-1g.5gb'])}*" in PAGES["mig"]


def test_openshifts_rights_are_for_its_autoscalers_status() -> None:
    [granted] = re.findall(r"--autoscaler-status (\S+)", PAGES["openshift"])
    [configured] = [
        it["hub"]["config"]["GPUSpawner"]["autoscaler_status"]
        for it in OF_THE_CHART.values()
        if "autoscaler_status" in str(it)
    ]

    assert granted == configured


def test_openshifts_machine_autoscaler_is_of_the_version_that_the_hub_reads() -> None:
    [autoscaler] = objects("openshift", "MachineAutoscaler")
    [path] = re.findall(
        r"/apis/(\S+)/machineautoscalers`", (ROOT / "docs/reference/requests.md").read_text()
    )

    assert autoscaler["apiVersion"] == path
