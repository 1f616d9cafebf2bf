"""The doctor finds each of these mistakes, once, and nothing else."""

from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager

import pytest

from gpuspawner.cluster.kinds import KINDS
from localcluster import Fleet, NodeGroup
from tests.doctor.asking import DEMO, Hub, hub_on, troubles
from tests.waiting import wait_for

SMALL = {"cpu": "4", "memory": "8Gi", "pods": "110"}
HOMES = """
c.KubeSpawner.storage_pvc_ensure = True
c.KubeSpawner.storage_capacity = "1Gi"
c.KubeSpawner.volumes = [
    {"name": "home", "persistentVolumeClaim": {"claimName": "claim-{username}"}}]
"""


@pytest.fixture(scope="module")
def demo(reporting_cluster):
    """The cluster with the fleet demo."""
    names = reporting_cluster.add_nodes("demo")
    yield reporting_cluster
    reporting_cluster.remove_nodes(names)


@pytest.fixture(scope="module")
def sound(demo, tmp_path_factory):
    """A hub without mistakes, for tests that only change its configuration."""
    with hub_on(demo, tmp_path_factory.mktemp("hub")) as made:
        yield made


@pytest.fixture
def own(demo, tmp_path):
    """A hub whose namespace and rights a test may spoil."""
    with hub_on(demo, tmp_path) as made:
        yield made


def changed(old, new):
    assert old in DEMO
    return DEMO.replace(old, new)


def test_a_sound_hub_has_no_troubles(sound):
    status, found = sound.doctor(sound.configure(DEMO))

    assert troubles(found) == []
    assert status == 0
    assert {"identity", "rights", "cluster", "scheduler", "offer"} == {
        it["id"] for it in found["fine"]
    }


IN_THE_CONFIGURATION = {
    "refusals that only warn, and limits that don't suit each other": (
        DEMO + """
c.GPUSpawner.preflight = "warn"
c.GPUSpawner.preparing_timeout = 60
c.KubeSpawner.k8s_api_request_retry_timeout = 2400
c.JupyterHub.tornado_settings = {"slow_spawn_timeout": 300}
        """,
        {"preflight": "enforce", "limit-preparing": "at least 600", "limit-retries": "2400 s",
         "limit-progress": "slow_spawn_timeout"}),
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
    "a pool at zero of which nothing is known": (
        changed("Tesla-T4", "Tesla-T40") + "c.GPUSpawner.autoscaling = 'always'",
        {"unknown-pool": "If you mean nvidia.com/gpu.product=Tesla-T4, write that in"}),
    "a missing toleration, and a runtime class that doesn't exist": (
        changed('"counts": [1, 2],', '"counts": [1, 2], "runtime_class": "nvdia",')
        + 'del c.GPUSpawner.accelerators["t4"]["tolerations"]',
        {"untolerated-taint": '"key": "nvidia.com/gpu", "operator": "Exists"',
         "missing": "RuntimeClass nvdia"}),
    "a misspelt class for home directories": (
        DEMO + HOMES + "c.KubeSpawner.storage_class = 'standrad'", {"storage-class": "standrad"}),
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
def test_it_finds_mistakes_in_the_configuration(sound, mistakes):
    text, expected = IN_THE_CONFIGURATION[mistakes]

    _, found = sound.doctor(sound.configure(text))

    assert sorted(it["id"] for it in troubles(found)) == sorted(expected)
    for finding in troubles(found):
        assert expected[finding["id"]] in f"{finding['text']} {finding['advice']}"


def test_a_function_that_forbids_servers_to_others_is_asked_for_whom_the_doctor_checks(sound):
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


@contextmanager
def without_right(hub, resource):
    role = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/gpuspawner-{hub.namespace}"
    rules = hub.cluster.api.get(role)["rules"]
    left = [{**it, "resources": [r for r in it["resources"] if r != resource]} for it in rules]
    hub.cluster.api.patch(role, {"rules": [it for it in left if it["resources"]]})
    yield


@contextmanager
def without_autoscaler_s_status(hub):
    group = {"eks.amazonaws.com/nodegroup": "t4"}
    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings"
    hub.cluster.api.delete(f"{roles}/gpuspawner-{hub.namespace}")
    labels = {"metadata": {"labels": group}}
    with node(hub, labels, {"metadata": {"labels": dict.fromkeys(group)}}):
        yield


@contextmanager
def without_role(hub):
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{hub.namespace}/rolebindings/hub"
    hub.cluster.api.delete(path)
    yield


@contextmanager
def rule(hub, kind, spec):
    path = f"/api/v1/namespaces/{hub.namespace}/{kind}"
    hub.cluster.api.create(path, {"metadata": {"name": "rule"}, "spec": spec})
    yield


@contextmanager
def restricted(hub):
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    hub.cluster.api.patch(f"/api/v1/namespaces/{hub.namespace}", {"metadata": {"labels": labels}})
    yield


@contextmanager
def node(hub, patch, back, part=""):
    path = f"/api/v1/nodes/t4-0{part}"
    hub.cluster.api.patch(path, patch)
    try:
        yield
    finally:
        hub.cluster.api.patch(path, back)


@contextmanager
def silent_plugin(hub):
    label = {"nvidia.com/gpu.product": "Tesla-V100", "nvidia.com/gpu.present": "true"}
    group = NodeGroup("v100", 2, SMALL, labels=label)
    names = hub.cluster.add_nodes(Fleet((group,)))
    try:
        yield
    finally:
        hub.cluster.remove_nodes(names)


GPU = "nvidia.com/gpu"
Plant = Callable[[Hub], AbstractContextManager[None]]
IN_THE_CLUSTER = {
    "no right to read nodes": (
        lambda hub: without_right(hub, "nodes"), "rights-nodes", "gpuspawner rbac"),
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
def test_it_finds_a_mistake_in_the_cluster(own, mistake):
    plant, expected, told = IN_THE_CLUSTER[mistake]
    configuration = own.configure(DEMO)

    with plant(own):
        finding = _only(own, configuration, expected)

    assert told in f"{finding['text']} {finding['advice']}"


def test_it_finds_that_the_hub_has_lost_its_rights_until_they_are_back(own):
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


def _only(hub, configuration, expected):
    """Ask until the mistake has reached the API server's own caches."""
    last = []

    def found():
        last[:] = troubles(hub.doctor(configuration)[1])
        return last[0] if [it["id"] for it in last] == [expected] else None

    try:
        return wait_for(found)
    except Exception as error:
        raise AssertionError(f"the doctor found {last}") from error
