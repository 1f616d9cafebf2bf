"""Volumes and shared memory, and their conflicts with the pod."""

from dataclasses import replace

import pytest

from gpuspawner.manifest import ManifestError, apply
from gpuspawner.offers import Offers
from gpuspawner.policy import Grant
from tests.unit.manifest.stock import A100, GI, server, stock


def test_a_pod_gets_the_accelerators_volumes_and_runtime_class():
    made = apply(stock(volumes=[{"name": "home", "emptyDir": {}}]), Grant(A100, 1))

    assert [volume["name"] for volume in made["spec"]["volumes"]] == [
        "home",
        "models",
        "gpuspawner-shared-memory",
    ]
    assert server(made)["volumeMounts"][0] == {
        "name": "models",
        "mountPath": "/models",
        "readOnly": True,
    }
    assert made["spec"]["runtimeClassName"] == "nvidia"


@pytest.mark.parametrize(("memory", "size"), [(None, 8 * GI), (16 * GI, 8 * GI), (4 * GI, 4 * GI)])
def test_shared_memory_is_never_above_the_servers_memory(memory, size):
    made = apply(stock(), Grant(A100, 1, memory=memory))

    assert made["spec"]["volumes"][-1]["emptyDir"] == {"medium": "Memory", "sizeLimit": str(size)}
    assert server(made)["volumeMounts"][-1]["mountPath"] == "/dev/shm"


def test_unconfigured_shared_memory_yields_to_a_mount():
    found = replace(A100, discovered=True)
    mounted = stock(volume_mounts=[{"name": "shm", "mountPath": "/dev/shm/"}])

    assert server(apply(stock(), Grant(found, 1)))["volumeMounts"][-1]["mountPath"] == "/dev/shm"
    assert server(apply(mounted, Grant(found, 1)))["volumeMounts"][0]["name"] == "shm"


CONFLICTS = [
    (
        {"volumes": [{"name": "models", "emptyDir": {}}]},
        "the pod has another volume named 'models'",
    ),
    (
        {"volume_mounts": [{"name": "home", "mountPath": "/models/"}]},
        "something else is mounted at /models (the volume 'home' of KubeSpawner's configuration)",
    ),
    (
        {"volume_mounts": [{"name": "shm", "mountPath": "/dev/shm"}]},
        "something else is mounted at /dev/shm (the volume 'shm' of KubeSpawner's configuration)",
    ),
]


@pytest.mark.parametrize(("settings", "reason"), CONFLICTS)
def test_a_contradiction_with_the_pod_is_named(settings, reason):
    with pytest.raises(ManifestError) as raised:
        apply(stock(**settings), Grant(A100, 1))

    assert str(raised.value) == f"GPUSpawner.accelerators['a100']: {reason}"


def test_a_mount_needs_a_volume():
    entry = {"node_selector": {"a": "b"}, "volume_mounts": [{"name": "data", "mountPath": "/d"}]}
    lost = Offers.parse(accelerators={"lost": entry}).accelerators["lost"]

    with pytest.raises(ManifestError, match="volume_mounts names 'data', but the pod has no such"):
        apply(stock(), Grant(lost, 1))
    assert apply(stock(volumes=[{"name": "data", "emptyDir": {}}]), Grant(lost, 1))
