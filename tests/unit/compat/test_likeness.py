"""Which servers have like pods, by their settings alone."""

from collections.abc import Callable
from typing import Any

import pytest
from kubespawner import KubeSpawner
from msgspec import structs
from traitlets import default

from gpuspawner import GPUSpawner
from gpuspawner.compat import pods
from gpuspawner.compat.likeness import Likeness, likeness
from gpuspawner.kube.objects import convert
from gpuspawner.kube.pods import Pod, Volume
from gpuspawner.preflight.decision import Start
from gpuspawner.spawner import in_front_of
from tests.unit.makers.courses import begin
from tests.unit.makers.hubs import StillHub
from tests.unit.makers.worlds import labelled, node

pytestmark = pytest.mark.each_python

CLAIM = {"name": "home", "persistentVolumeClaim": {"claimName": "claim-{username}"}}
DISK = {"name": "d", "gcePersistentDisk": {"pdName": "disk-{username}"}}
SAME_DISK = {"name": "d", "gcePersistentDisk": {"pdName": "datasets"}}
SIDECAR = {"name": "s", "image": "s", "ports": [{"hostPort": 8080, "containerPort": 80}]}
NAMED_SIDECAR = {**SIDECAR, "name": "s-{username}"}
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"owner": "{username}"}},
}

DECIDING: list[dict[str, Any]] = [
    {"node_selector": {"gpu": "a100"}},
    {"tolerations": [{"operator": "Exists"}]},
    {"mem_guarantee": "2G"},
    {"mem_limit": "2G"},
    {"cpu_guarantee": 2},
    {"cpu_limit": 2},
    {"extra_resource_limits": {"nvidia.com/gpu": "1"}},
    {"extra_resource_guarantees": {"nvidia.com/gpu": "1"}},
    {"image": "other:1"},
    {"image_pull_policy": "Always"},
    {"priority_class_name": "course"},
    {"scheduler_name": "user-scheduler"},
    {"namespace": "elsewhere"},
    {"kueue_queue": "students"},
    {"extra_labels": {"team": "physics"}},
    {"extra_pod_config": {"hostNetwork": True}},
    {"extra_container_config": {"ports": [{"hostPort": 1, "containerPort": 1}]}},
    {"extra_containers": [SIDECAR]},
    {"init_containers": [SIDECAR]},
    {"volumes": [SAME_DISK]},
    {"volumes": {"1": SAME_DISK}},
    {"node_affinity_required": [{"matchExpressions": []}]},
    {"pod_affinity_required": [{"topologyKey": "zone"}]},
    {"pod_anti_affinity_required": [{"topologyKey": "zone"}]},
    {"storage_pvc_ensure": True},
    {"storage_class": "fast"},
    {"storage_capacity": "1Gi"},
]
"""Each gives other pods, or another claim."""

NAMING: list[dict[str, Any]] = [
    {"volumes": [DISK]},
    {"extra_containers": [NAMED_SIDECAR]},
    {"init_containers": [NAMED_SIDECAR]},
    {"extra_pod_config": {"topologySpreadConstraints": [SPREAD]}},
    {"uid": id},
    {"fs_gid": id},
]
"""Each writes the owner's name into the pod, or may fail for one owner alone."""

HOME = {"name": "volume-{username}", "mountPath": "/home", "subPath": "{username}"}
MOUNTING: list[dict[str, Any]] = [
    {"volume_mounts": [HOME]},
    {"volume_mounts": {"home": HOME}},
    {"volumes": [{"name": "volume-{username}", "emptyDir": {}}]},
]
"""What is mounted may be named after the owner."""

IDLE: list[dict[str, Any]] = [
    {"environment": {"TOKEN": "x"}},
    {"environment": {"TOKEN": str}},
    {"cmd": ["start"]},
    {"uid": 1000},
    {"default_url": "/lab"},
]
"""None of them is anything that a scheduler reads."""


@pytest.fixture
def of(monkeypatch) -> Callable[..., GPUSpawner]:
    """Return a function that makes the spawner of a user."""
    hub = StillHub(monkeypatch)

    def made(name: str, **traits: Any) -> GPUSpawner:
        spawner = hub.spawner(**traits)
        spawner.user.name, spawner.pod_name = name, f"jupyter-{name}"
        spawner.pvc_name = f"claim-{name}"
        return spawner

    return made


def found(spawner: GPUSpawner) -> Likeness:
    alike = likeness(spawner)
    assert alike is not None
    return alike


async def read(spawner: GPUSpawner) -> Pod:
    made = convert("Pod", pods.plain(await spawner.get_pod_manifest()))
    assert isinstance(made, Pod)
    return made


def unnamed(pod: Pod) -> object:
    """Return what the scheduler reads of a pod, without its labels."""
    volumes = [it for it in pod.spec.volumes or () if it != Volume(it.name)]
    return structs.replace(pod.spec, volumes=volumes)


@pytest.mark.parametrize("traits", [{}, *DECIDING, *IDLE, *MOUNTING], ids=str)
async def test_the_pods_of_two_users_with_equal_settings_are_alike(of, traits) -> None:
    traits = {it: value for it, value in traits.items() if it != "storage_pvc_ensure"}
    ann, bob = of("ann", **traits), of("bob", **traits)

    assert found(ann).but_for_names == found(bob).but_for_names
    assert found(ann).but_for_claims == found(bob).but_for_claims
    assert found(ann).alone != found(bob).alone
    if traits not in MOUNTING:
        assert unnamed(await read(ann)) == unnamed(await read(bob))


@pytest.mark.parametrize("traits", DECIDING, ids=str)
def test_a_setting_that_a_scheduler_may_read_makes_a_difference(of, traits) -> None:
    plain, other = found(of("ann")), found(of("ann", **traits))

    assert plain.but_for_claims != other.but_for_claims
    assert plain.but_for_names != other.but_for_names


@pytest.mark.parametrize("traits", NAMING, ids=str)
def test_pods_with_their_owners_names_are_nobody_else_s(of, traits) -> None:
    ann, bob = found(of("ann", **traits)), found(of("bob", **traits))

    assert ann.but_for_claims != bob.but_for_claims
    assert ann.but_for_names != bob.but_for_names


@pytest.mark.parametrize("traits", [{"volumes": [CLAIM]}, {"storage_pvc_ensure": True}], ids=str)
def test_claims_with_their_owners_names_are_nobody_else_s(of, traits) -> None:
    ann, bob = found(of("ann", **traits)), found(of("bob", **traits))

    assert ann.but_for_claims == bob.but_for_claims
    assert ann.but_for_names != bob.but_for_names


@pytest.mark.parametrize("traits", IDLE, ids=str)
def test_what_no_scheduler_reads_makes_no_difference(of, traits) -> None:
    assert found(of("ann", **traits)).but_for_names == found(of("bob")).but_for_names


@pytest.mark.parametrize(
    "traits",
    [
        {"volume_mounts": [{"name": "shm", "mountPath": "/dev/shm"}]},
        {"volumes": [{"name": "data", "emptyDir": {}}]},
    ],
    ids=str,
)
def test_what_an_accelerator_could_clash_with_makes_a_difference(of, traits) -> None:
    assert found(of("ann", **traits)).but_for_claims != found(of("ann")).but_for_claims


class Theirs(GPUSpawner):
    async def get_pod_manifest(self) -> Any:
        return await super().get_pod_manifest()


def test_nobody_can_tell_if_a_class_of_others_makes_the_pods(monkeypatch) -> None:
    assert likeness(StillHub(monkeypatch).spawner(Theirs)) is None


@pytest.mark.parametrize(
    "value", [object(), str, 2**70, "\ud800"], ids=["object", "function", "number", "surrogate"]
)
def test_nobody_can_tell_if_a_setting_is_no_plain_data(of, value) -> None:
    spawner = of("ann")
    spawner.extra_pod_config = {"nodeSelector": value}

    assert likeness(spawner) is None


class FindsAProject(KubeSpawner):
    """A class whose defaults need what its ``start`` or a hook finds out."""

    @default("volumes")
    def _of_its_project(self) -> Any:
        return self.projects["volumes"]

    @default("node_selector")
    def _where_its_project_runs(self) -> Any:
        return {}[self.user.name]


async def test_a_class_that_cannot_tell_its_settings_yet_has_a_form_and_starts(hub_with) -> None:
    found = "Node", labelled(node("a", 2), {"nvidia.com/gpu.product": "Tesla-T4"})
    spawner: Any = hub_with(found).spawner(in_front_of(FindsAProject))

    assert "data-accelerator" in await spawner.get_options_form()
    await begin(spawner, accelerator=None)

    assert isinstance(spawner.gpuspawner_gates.attempt.decision, Start)
