"""The offers of helm-values, read as the hub reads them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from gpuspawner.offers.offers import Offers
from gpuspawner.offers.vendors import MODEL_LABELS
from gpuspawner.scheduling import ClusterState, evaluate
from localcluster import fleet
from localcluster.nodes import node_objects
from tests.helm.chart import CLOUDS, VALUES, Values, merged, read

OFFERED = ("accelerators", "images", "memory_choices", "cpu_choices", "default_accelerator")


def pulled_to_gpu_nodes() -> Values:
    puller: Values = yaml.safe_load((VALUES / "pull-images.yaml").read_text())
    return puller["spec"]["template"]


def spawner_section(*names: str) -> Values:
    return merged(*(read(name) for name in names))["hub"]["config"]["GPUSpawner"]


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_accelerators_of_each_cloud_are_valid(cloud: str):
    section = spawner_section("base", "choices", cloud)

    offers = Offers.parse(**{name: section[name] for name in OFFERED})

    assert list(offers.accelerators) == list(section["accelerators"])
    assert offers.default_accelerator is None


@pytest.mark.parametrize("cloud", CLOUDS)
def test_only_the_offers_and_the_preflight_are_set(cloud: str):
    assert set(spawner_section("base", "choices", cloud)) == {*OFFERED, "preflight"}


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_image_pullers_reach_every_gpu_node(cloud: str):
    values = read(cloud)
    accelerators = values["hub"]["config"]["GPUSpawner"]["accelerators"].values()

    tolerated = [term for accelerator in accelerators for term in accelerator["tolerations"]]

    assert all(term in values["prePuller"]["extraTolerations"] for term in tolerated)


def test_base_offers_nothing_so_that_the_hub_discovers_gpus_and_keeps_singleuser():
    assert set(spawner_section("base")) == {"preflight"}
    assert "singleuser" not in read("base")


def test_images_with_cuda_are_pulled_to_nodes_with_gpus_and_the_others_to_every_node():
    offered = {image["image"] for image in spawner_section("choices")["images"].values()}
    extra = read("choices")["prePuller"]["extraImages"].values()
    with_cuda = {image for image in offered if "cuda" in image}

    assert {f"{image['name']}:{image['tag']}" for image in extra} == offered - with_cuda
    pulls = pulled_to_gpu_nodes()["spec"]["initContainers"]
    assert {container["image"] for container in pulls} == with_cuda != set()


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_puller_of_images_with_cuda_reaches_the_nodes_with_gpus_and_no_others(cloud: str):
    nodes = list(node_objects(fleet.load(cloud)))
    with_gpus = {
        node["metadata"]["name"]
        for node in nodes
        if any(name.startswith("nvidia.com/") for name in node["status"]["allocatable"])
    }

    template = pulled_to_gpu_nodes()
    pod = {**template, "metadata": {**template["metadata"], "name": "gpu-image-puller-x"}}
    verdict = evaluate(ClusterState.from_objects(nodes=nodes, pods=[]), pod)

    assert set(verdict.feasible) == with_gpus != set()


@pytest.mark.parametrize("label", [it for it in MODEL_LABELS if it.endswith("gpu-name")])
def test_the_puller_of_images_with_cuda_reaches_the_nodes_that_each_karpenter_makes(label: str):
    taint = {"key": "sku", "value": "gpu", "effect": "NoSchedule"}
    made = {"metadata": {"name": "n", "labels": {label: "T4"}}, "spec": {"taints": [taint]}}
    made["status"] = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}
    template = pulled_to_gpu_nodes()
    pod = {**template, "metadata": {**template["metadata"], "name": "gpu-image-puller-x"}}

    assert evaluate(ClusterState.from_objects(nodes=[made], pods=[]), pod).feasible == ("n",)


@pytest.mark.parametrize("path", sorted(VALUES.glob("*.yaml")), ids=lambda path: path.name)
def test_every_image_has_a_tag_that_stays_the_same(path: Path):
    text = path.read_text()

    assert "latest" not in text
    for image in re.findall(r"image: (\S+/\S+)", text):
        assert ":" in image


def test_the_configuration_is_checked_last_and_sets_the_spawner():
    """The chart runs hub.extraConfig sorted by name (files/hub/jupyterhub_config.py, 4.4.0)."""
    entries = {"00-own": "", "myConfig": "", "z-own": "", **read("base")["hub"]["extraConfig"]}

    assert sorted(entries)[-1] == "zz-gpuspawner"
    assert "gpuspawner.configure(c)" in entries["zz-gpuspawner"]
