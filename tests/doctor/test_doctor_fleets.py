"""The doctor is content with each fleet, and with each example for it."""

from contextlib import contextmanager

import pytest

from localcluster import Fleet, NodeGroup, fleet
from tests.doctor.asking import troubles
from tests.helm.chart import CLOUDS, merged, read

RUNTIME_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
OF_THE_CHART = """
c.JupyterHub.spawner_class = "kubespawner.KubeSpawner"
c.JupyterHub.tornado_settings = {{"slow_spawn_timeout": 0}}
c.KubeSpawner.start_timeout = {start_timeout}
c.KubeSpawner.profile_list = {profiles!r}
for name, section in {sections!r}.items():
    c[name].update(section)
"""
"""The parts of the chart's configuration file that our values set."""

OLD = """
c.GPUSpawner.accelerators = {"gtx": {
    "resource": "alpha.kubernetes.io/nvidia-gpu",
    "node_selector": {"accelerator": "nvidia-gtx-1080"}}}
"""
A100 = NodeGroup(
    "a100",
    1,
    {"cpu": "48", "memory": "340Gi", "pods": "110", "nvidia.com/gpu": "4"},
    labels={"cloud.google.com/gke-accelerator": "nvidia-tesla-a100"},
    taints=(fleet.Taint("nvidia.com/gpu", "present", "NoSchedule"),),
)
"""Nodes that profiles.yaml offers and the fleet gke lacks."""


def configuration(values):
    hub, single = values["hub"], values.get("singleuser", {})
    text = OF_THE_CHART.format(
        start_timeout=single.get("startTimeout", 300),
        profiles=single.get("profileList", []),
        sections=hub.get("config", {}),
    )
    return text + "".join(program for _, program in sorted(hub["extraConfig"].items()))


@contextmanager
def runtime_class(cluster):
    """The class that NVIDIA's GPU operator makes."""
    made = {"metadata": {"name": "nvidia"}, "handler": "nvidia"}
    cluster.api.create(RUNTIME_CLASSES, made)
    try:
        yield
    finally:
        cluster.api.delete(f"{RUNTIME_CLASSES}/nvidia")


@pytest.mark.parametrize("name", sorted(set(fleet.names()) - {"old-device"}))
def test_what_the_hub_discovers_on_a_fleet_is_sound(hub, add_nodes, name):
    add_nodes(name)

    status, found = hub.doctor(hub.configure(""))

    assert troubles(found) == []
    assert status == 0


def test_a_resource_of_an_old_device_plugin_is_sound(hub, add_nodes):
    add_nodes("old-device")

    assert troubles(hub.doctor(hub.configure(OLD))[1]) == []


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_example_for_a_cloud_is_sound(hub, add_nodes, cloud):
    add_nodes(cloud)

    values = merged(read("base"), read("choices"), read(cloud))

    with runtime_class(hub.cluster):
        status, found = hub.doctor(hub.write(configuration(values)))

    assert troubles(found) == []
    assert status == 0


def test_the_example_for_profiles_is_sound(hub, add_nodes):
    add_nodes("gke")
    add_nodes(Fleet((A100,)))

    status, found = hub.doctor(hub.write(configuration(merged(read("base"), read("profiles")))))

    assert troubles(found) == []
    assert status == 0
