"""The offers of helm-values, read as the hub reads them."""

from __future__ import annotations

import pytest

from gpuspawner.offers import Offers
from tests.helm.chart import CLOUDS, Values, merged, read

OFFERED = ("accelerators", "images", "memory_choices", "cpu_choices", "default_accelerator")


def spawner_section(*names: str) -> Values:
    return merged(*(read(name) for name in names))["hub"]["config"]["GPUSpawner"]


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_accelerators_of_each_cloud_are_valid(cloud: str):
    section = spawner_section("base", cloud)

    offers = Offers.parse(**{name: section[name] for name in OFFERED})

    assert list(offers.accelerators) == list(section["accelerators"])
    assert offers.default_accelerator is None


@pytest.mark.parametrize("cloud", CLOUDS)
def test_only_the_offers_and_the_preflight_are_set(cloud: str):
    assert set(spawner_section("base", cloud)) == {*OFFERED, "preflight"}


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_image_pullers_reach_every_gpu_node(cloud: str):
    values = read(cloud)
    accelerators = values["hub"]["config"]["GPUSpawner"]["accelerators"].values()

    tolerated = [term for accelerator in accelerators for term in accelerator["tolerations"]]

    assert all(term in values["prePuller"]["extraTolerations"] for term in tolerated)


def test_offered_images_are_pulled_in_advance():
    values = read("base")
    pulled = {
        f"{image['name']}:{image['tag']}" for image in values["prePuller"]["extraImages"].values()
    }
    offered = {image["image"] for image in values["hub"]["config"]["GPUSpawner"]["images"].values()}

    assert pulled == {image for image in offered if "cuda" in image}


def test_the_configuration_is_checked_last_and_sets_the_spawner():
    """The chart runs hub.extraConfig sorted by name (files/hub/jupyterhub_config.py, 4.4.0)."""
    entries = {"00-own": "", "myConfig": "", "z-own": "", **read("base")["hub"]["extraConfig"]}

    assert sorted(entries)[-1] == "zz-gpuspawner"
    assert "gpuspawner.configure(c)" in entries["zz-gpuspawner"]
