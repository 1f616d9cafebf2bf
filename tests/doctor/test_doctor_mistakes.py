"""The doctor finds each of these mistakes, once, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from gpuspawner.cluster.kinds import KINDS
from localcluster import Fleet, LocalCluster, NodeGroup
from tests.doctor.asking import DEMO, Hub, Plain, hub_on, troubles
from tests.waiting import wait_for

SMALL = {"cpu": "4", "memory": "8Gi", "pods": "110"}
A_CLASS = {"metadata": {"name": "standard"}, "provisioner": "example.com/disk"}
WAITING = {**A_CLASS, "volumeBindingMode": "WaitForFirstConsumer"}
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
HOMES = """
c.KubeSpawner.storage_pvc_ensure = True
c.KubeSpawner.storage_capacity = "1Gi"
c.KubeSpawner.volumes = [
    {"name": "home", "persistentVolumeClaim": {"claimName": "claim-{username}"}}]
"""


@pytest.fixture(scope="module")
def demo(reporting_cluster: LocalCluster) -> Iterator[LocalCluster]:
    """The cluster with the fleet demo."""
    names = reporting_cluster.add_nodes("demo")
    yield reporting_cluster
    reporting_cluster.remove_nodes(names)


@pytest.fixture(scope="module")
def sound(demo: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """A hub without mistakes, for tests that only change its configuration."""
    with hub_on(demo, tmp_path_factory.mktemp("hub")) as made:
        yield made


@pytest.fixture
def own(demo: LocalCluster, tmp_path: Path) -> Iterator[Hub]:
    """A hub whose namespace and rights a test may spoil."""
    with hub_on(demo, tmp_path) as made:
        yield made


def changed(old: str, new: str) -> str:
    assert old in DEMO
    return DEMO.replace(old, new)


def test_a_sound_hub_has_no_troubles(sound: Hub) -> None:
    status, found = sound.doctor(sound.configure(DEMO))

    assert troubles(found) == []
    assert status == 0
    assert {"identity", "rights", "cluster", "scheduler", "offer"} == {
        it["id"] for it in found["fine"]
    }


PROFILES = """
c.KubeSpawner.profile_list = [{"display_name": "Two", "kubespawner_override": {
    "extra_resource_limits": {"nvidia.com/gpu": "2"},
    "node_selector": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"},
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}}]
"""


def with_policy(policy: Plain, to: str = DEMO) -> str:
    return f"{to}c.GPUSpawner.policies = {{'p': {policy!r}}}\n"


IN_THE_CONFIGURATION: dict[str, tuple[str, dict[str, str]]] = {
    "a misspelt trait": (
        DEMO + "c.GPUSpawner.acelerators = {}", {"configuration": "accelerators"}),
    "refusals that only warn, and limits that don't suit each other": (
        DEMO + """
c.GPUSpawner.preflight = "warn"
c.GPUSpawner.preparing_timeout = 60
c.KubeSpawner.k8s_api_request_retry_timeout = 2400
c.JupyterHub.tornado_settings = {"slow_spawn_timeout": 300}
        """,
        {"preflight": "enforce", "limit-preparing": "at least 600", "limit-retries": "2400 s",
         "limit-progress": "slow_spawn_timeout"}),
    "an unknown scheduler": (
        DEMO + "c.KubeSpawner.scheduler_name = 'packer'", {"scheduler": "packer"}),
    "a version that isn't one": (
        DEMO + "c.GPUSpawner.scheduler_version = 'newest'", {"scheduler-version": "newest"}),
    "an API server that isn't there": (
        DEMO + "c.KubeSpawner.k8s_api_host = 'https://127.0.0.1:9'", {"cluster": "k8s_api_host"}),
    "a misspelt model, a misspelt resource, and more GPUs than a node has": (
        changed("Tesla-T4", "Tesla-T40")
        .replace("mig-1g.5gb", "mig-1g.5bg").replace("[1, 2]", "[1, 2, 4]"),
        {"no-node": "Write nvidia.com/gpu.product=Tesla-T4 in",
         "no-resource": "Write 'nvidia.com/mig-1g.5gb'", "too-large": "a100 with 4 GPUs"}),
    "a misspelt label, and more memory than a node has": (
        changed('{"nvidia.com/gpu.product": "Tesla', '{"nvidia.com/gpu.produkt": "Tesla')
        .replace('"4Gi"', '"2Ti"'),
        {"no-node": "Write nvidia.com/gpu.product=Tesla-T4 in", "too-large": "2Ti of memory"}),
    "a model that no node has": (
        changed("Tesla-T4", "NVIDIA-H200"), {"no-node": "scale_up"}),
    "a pool at zero of which nothing is known": (
        changed("Tesla-T4", "Tesla-T40") + "c.GPUSpawner.autoscaling = 'always'",
        {"unknown-pool": "If you mean nvidia.com/gpu.product=Tesla-T4, write that in"}),
    "a missing toleration, and a runtime class that doesn't exist": (
        changed('"counts": [1, 2],', '"counts": [1, 2], "runtime_class": "nvdia",')
        + 'del c.GPUSpawner.accelerators["t4"]["tolerations"]',
        {"untolerated-taint": '"key": "nvidia.com/gpu", "operator": "Exists"',
         "missing": "RuntimeClass nvdia"}),
    "a selector for all servers that no node matches": (
        DEMO + 'c.KubeSpawner.node_selector = {"pool": "users"}', {"no-node": "pool=users"}),
    "a priority class that doesn't exist": (
        DEMO + "c.KubeSpawner.priority_class_name = 'urgent'", {"missing": "PriorityClass urgent"}),
    "no class for home directories": (DEMO + HOMES, {"storage-class": "default StorageClass"}),
    "a misspelt class for home directories": (
        DEMO + HOMES + "c.KubeSpawner.storage_class = 'standrad'", {"storage-class": "standrad"}),
    "a profile for a model that no node has": (
        """
c.KubeSpawner.profile_list = [
    {"display_name": "CPU"},
    {"display_name": "GPU", "kubespawner_override": {
        "extra_resource_limits": {"nvidia.com/gpu": "1"},
        "node_selector": {"nvidia.com/gpu.product": "Tesla-T4-16GB"}}}]
        """,
        {"no-node": "Write nvidia.com/gpu.product=Tesla-T4 in KubeSpawner.profile_list"}),
    "a function for profiles that fails": (
        "c.KubeSpawner.profile_list = lambda spawner: spawner.nothing", {"profiles": "nothing"}),
    "a policy for an accelerator that isn't offered": (
        with_policy({"accelerators": ["a1000"]}), {"configuration": "did you mean 'a100'?"}),
    "a policy for a profile that doesn't exist": (
        with_policy({"profiles": ["gpu"]}),
        {"policy-unknown": "GPUSpawner.policies['p'].profiles"}),
    "a limit below each profile": (
        PROFILES + with_policy({"gpus_per_server": 1}, to=""),
        {"policy-too-small": "the profile “Two” takes at least 2"}),
    "a limit below the smallest server, and policies that say nothing": (
        changed("[1, 2]", "[2]") + """
c.GPUSpawner.policies = {
    "small": {"gpus_per_user": {"a100": 1}},
    "nobody": {"groups": ["a"], "except": {"groups": ["*"]}, "gpus_per_user": 1},
    "nothing": {"groups": ["a"]},
    "shared": {"groups": ["*"], "gpus_per_group": 4}}
        """,
        {"policy-too-small": "gpus_per_user['a100'] is 1, but a100 takes at least 2",
         "policy-nobody": "'except' takes out all", "policy-nothing": "denies nothing",
         "policy-groups": "_per_user"}),
}  # fmt: skip


@pytest.mark.parametrize("mistakes", IN_THE_CONFIGURATION)
def test_it_finds_mistakes_in_the_configuration(sound: Hub, mistakes: str) -> None:
    text, expected = IN_THE_CONFIGURATION[mistakes]

    _, found = sound.doctor(sound.configure(text))

    assert sorted(it["id"] for it in troubles(found)) == sorted(expected)
    for finding in troubles(found):
        assert expected[finding["id"]] in f"{finding['text']} {finding['advice']}"


def test_a_function_that_forbids_servers_to_others_is_asked_for_whom_the_doctor_checks(
    sound: Hub,
) -> None:
    configured = sound.configure("""
from tornado import web

def profiles(spawner):
    if "lab" not in {it.name for it in spawner.user.groups}:
        raise web.HTTPError(403, "Only the lab may start servers")
    return [{"display_name": "CPU"}]

c.KubeSpawner.profile_list = profiles
""")

    status, found = sound.doctor(configured)
    assert status == 0
    assert [it["id"] for it in found["warning"]] == ["profiles"]
    assert "Only the lab may start servers" in found["warning"][0]["text"]

    status, found = sound.doctor(configured, "--user", "alice", "--group", "lab")
    assert troubles(found) == []
    assert status == 0


def test_a_setting_that_asks_who_the_user_is_is_no_error_if_the_doctor_imagines_one(
    sound: Hub,
) -> None:
    asking = "c.KubeSpawner.environment = {'TEAM': lambda it: it.user.groups[0].name}"
    configured = sound.configure(DEMO + asking)

    status, found = sound.doctor(configured)
    assert status == 0
    assert [it["id"] for it in found["warning"]] == ["own-code"]

    status, found = sound.doctor(configured, "--user", "alice", "--group", "lab")
    assert troubles(found) == []
    assert status == 0


def test_it_finds_a_hub_that_uses_another_spawner(sound: Hub) -> None:
    status, found = sound.doctor(sound.write(DEMO))

    assert [it["id"] for it in troubles(found)] == ["spawner-class"]
    assert status == 1


@contextmanager
def without_right(hub: Hub, resource: str) -> Iterator[None]:
    role = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/gpuspawner-{hub.namespace}"
    rules = hub.cluster.api.get(role)["rules"]
    left = [{**it, "resources": [r for r in it["resources"] if r != resource]} for it in rules]
    hub.cluster.api.patch(role, {"rules": [it for it in left if it["resources"]]})
    yield


@contextmanager
def without_autoscaler_s_status(hub: Hub) -> Iterator[None]:
    group = {"eks.amazonaws.com/nodegroup": "t4"}
    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings"
    hub.cluster.api.delete(f"{roles}/gpuspawner-{hub.namespace}")
    labels = {"metadata": {"labels": group}}
    with node(hub, labels, {"metadata": {"labels": dict.fromkeys(group)}}):
        yield


@contextmanager
def without_role(hub: Hub) -> Iterator[None]:
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{hub.namespace}/rolebindings/hub"
    hub.cluster.api.delete(path)
    yield


@contextmanager
def rule(hub: Hub, kind: str, spec: Plain) -> Iterator[None]:
    path = f"/api/v1/namespaces/{hub.namespace}/{kind}"
    hub.cluster.api.create(path, {"metadata": {"name": "rule"}, "spec": spec})
    yield


@contextmanager
def restricted(hub: Hub) -> Iterator[None]:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    hub.cluster.api.patch(f"/api/v1/namespaces/{hub.namespace}", {"metadata": {"labels": labels}})
    yield


@contextmanager
def node(hub: Hub, patch: Plain, back: Plain, part: str = "") -> Iterator[None]:
    path = f"/api/v1/nodes/t4-0{part}"
    hub.cluster.api.patch(path, patch)
    yield
    hub.cluster.api.patch(path, back)


@contextmanager
def silent_plugin(hub: Hub) -> Iterator[None]:
    label = {"nvidia.com/gpu.product": "Tesla-V100", "nvidia.com/gpu.present": "true"}
    group = NodeGroup("v100", 2, SMALL, labels=label)
    names = hub.cluster.add_nodes(Fleet((group,)))
    yield
    hub.cluster.remove_nodes(names)


GPU = "nvidia.com/gpu"
Plant = Callable[[Hub], AbstractContextManager[None]]
IN_THE_CLUSTER: dict[str, tuple[Plant, str, str]] = {
    "no right to read nodes": (
        lambda hub: without_right(hub, "nodes"), "rights-nodes", "gpuspawner rbac"),
    "no right to read pods": (
        lambda hub: without_right(hub, "pods"), "rights-pods", "every server starts unchecked"),
    "no right to read device classes": (
        lambda hub: without_right(hub, "deviceclasses"), "rights-deviceclasses", "refused"),
    "no right to read what Cluster Autoscaler says": (
        without_autoscaler_s_status, "rights-cluster-autoscaler", "cluster-autoscaler-status"),
    "no right to start servers": (without_role, "rights-servers", "create pods"),
    "a quota without GPUs": (
        lambda hub: rule(hub, "resourcequotas", {"hard": {f"requests.{GPU}": "0"}}),
        "quota", "requests.nvidia.com/gpu"),
    "a limit below the smallest choice": (
        lambda hub: rule(
            hub, "limitranges", {"limits": [{"type": "Container", "max": {"memory": "512Mi"}}]}),
        "limit-range", "512Mi"),
    "a namespace that allows only restricted pods": (restricted, "pod-security", "restricted"),
    "a device plugin that doesn't run": (silent_plugin, "no-gpus-on-node", "v100-0, v100-1"),
    "an unhealthy GPU": (
        lambda hub: node(
            hub, {"status": {"capacity": {GPU: "2"}}}, {"status": {"capacity": {GPU: "1"}}},
            "/status"),
        "unhealthy-gpus", "1 × nvidia.com/gpu on 1 node (t4-0)"),
    "a node that stayed cordoned": (
        lambda hub: node(
            hub, {"spec": {"unschedulable": True}}, {"spec": {"unschedulable": None}}),
        "nodes-away", "uncordon"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", IN_THE_CLUSTER)
def test_it_finds_a_mistake_in_the_cluster(own: Hub, mistake: str) -> None:
    plant, expected, told = IN_THE_CLUSTER[mistake]
    configuration = own.configure(DEMO)

    with plant(own):
        finding = _only(own, configuration, expected)

    assert told in f"{finding['text']} {finding['advice']}"


def test_it_finds_that_the_hub_has_lost_its_rights_until_they_are_back(own: Hub) -> None:
    configuration = own.configure(DEMO)
    bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    binding = own.cluster.api.get(f"{bindings}/gpuspawner-{own.namespace}")
    other = [{**binding["subjects"][0], "namespace": "staging"}]
    expected = {f"rights-{kind.plural}" for kind in KINDS}

    own.cluster.api.patch(f"{bindings}/gpuspawner-{own.namespace}", {"subjects": other})
    wait_for(lambda: expected == {it["id"] for it in troubles(own.doctor(configuration)[1])})
    advice = {it["id"]: it["advice"] for it in troubles(own.doctor(configuration)[1])}
    assert "gpuspawner rbac prints for the hub's namespace" in advice["rights-pods"]

    own.cluster.api.patch(
        f"{bindings}/gpuspawner-{own.namespace}", {"subjects": binding["subjects"]}
    )
    wait_for(lambda: troubles(own.doctor(configuration)[1]) == [])


def test_it_finds_that_what_policies_limit_cannot_be_counted(own: Hub) -> None:
    configuration = own.configure(with_policy({"gpus_per_user": 1}))
    expected = {"rights-pods", "rights-servers", "rights-policies"}

    with without_right(own, "pods"), without_role(own):
        wait_for(lambda: expected == {it["id"] for it in troubles(own.doctor(configuration)[1])})


def test_sound_policies_are_no_trouble(sound: Hub) -> None:
    shared = {"groups": ["ml-*"], "gpus_per_user": 1, "gpus_per_group": {"a100": 2, "all": 4}}

    status, found = sound.doctor(sound.configure(with_policy(shared)))

    assert (status, troubles(found)) == (0, [])
    assert "policies" in {it["id"] for it in found["fine"]}


def _only(hub: Hub, configuration: Path, expected: str) -> Any:
    """Ask until the mistake has reached the API server's own caches."""
    last: list[Plain] = []

    def found() -> Plain | None:
        last[:] = troubles(hub.doctor(configuration)[1])
        return last[0] if [it["id"] for it in last] == [expected] else None

    try:
        return wait_for(found)
    except Exception as error:
        raise AssertionError(f"the doctor found {last}") from error


@pytest.mark.parametrize(
    ("storage_class", "expected"), [(WAITING, []), (A_CLASS, ["storage-immediate"])]
)
def test_a_storage_class_should_wait_for_the_scheduler(
    sound: Hub, storage_class: Plain, expected: list[str]
) -> None:
    configuration = sound.configure(f"{DEMO}{HOMES}c.KubeSpawner.storage_class = 'standard'")
    sound.cluster.api.create(CLASSES, storage_class)
    try:
        _, found = sound.doctor(configuration)
    finally:
        sound.cluster.api.delete(f"{CLASSES}/standard")

    assert [it["id"] for it in troubles(found)] == expected
