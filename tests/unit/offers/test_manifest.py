"""How a grant changes KubeSpawner's pod, and what of the pod contradicts it."""

import copy
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes_asyncio.client import ApiClient
from kubespawner.objects import make_pod

from gpuspawner.offers.grant import Grant
from gpuspawner.offers.manifest import (
    EVERYWHERE,
    MOST_TERMS,
    ManifestError,
    PodRules,
    apply,
    off,
    showing_gpus,
    with_last_words,
)
from gpuspawner.offers.node_affinity import write
from gpuspawner.offers.offers import Offers
from tests.unit.makers.configured import accelerator

Plain = dict[str, Any]

GI = 1024**3
OFFERS = Offers.parse(
    accelerators={
        "a100": {
            "counts": [1, 2],
            "node_selector": {"gpu": "a100"},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
            "environment": {"NCCL_DEBUG": "INFO"},
            "volumes": [{"name": "models", "hostPath": {"path": "/srv/models"}}],
            "volume_mounts": [{"name": "models", "mountPath": "/models", "readOnly": True}],
            "runtime_class": "nvidia",
            "shared_memory": "8Gi",
        },
        "mig": {
            "resource": "nvidia.com/mig-1g.5gb",
            "node_affinity": [
                {"matchExpressions": [{"key": "mig", "operator": "In", "values": ["1g", "all"]}]},
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["dgx"]}]},
            ],
        },
        "bare": {"node_selector": {"gpu": "bare"}},
    },
    images={"pytorch": {"image": "quay.io/jupyter/pytorch-notebook:cuda12"}},
)
A100, MIG, BARE = OFFERS.accelerators.values()
ALL = tuple(OFFERS.accelerators.values())


def stock(**settings):
    """Return a pod as KubeSpawner makes it, in the API's form."""
    pod = make_pod("jupyter-anna", ["jupyterhub-singleuser"], 8888, "notebook:1", **settings)
    # ApiClient() would open a connection, which serialization doesn't need.
    return ApiClient.sanitize_for_serialization(ApiClient.__new__(ApiClient), pod)


def server(pod):
    return pod["spec"]["containers"][0]


def environment(pod):
    return {entry["name"]: entry.get("value") for entry in server(pod)["env"]}


def terms(pod):
    node = pod["spec"]["affinity"]["nodeAffinity"]
    return node["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]


def resources_of(*pod_grant_and_rules):
    return server(apply(*pod_grant_and_rules))["resources"]


def test_memory_and_cpu_have_equal_requests_and_limits():
    before = stock(mem_limit=2 * GI, mem_guarantee=GI, cpu_guarantee=0.5)
    resources = resources_of(before, Grant(memory=16 * GI, cpu=1500))

    assert resources["limits"] == resources["requests"] == {"memory": "16Gi", "cpu": "1500m"}


def test_values_that_are_not_granted_stay_as_kubespawner_sets_them():
    before = stock(mem_limit=2 * GI, mem_guarantee=GI, extra_resource_limits={"ephemeral": "1"})

    assert resources_of(before, Grant(BARE, 1)) == {
        "limits": {"memory": 2 * GI, "ephemeral": "1", "nvidia.com/gpu": "1"},
        "requests": {"memory": GI, "nvidia.com/gpu": "1"},
    }
    assert server(apply(before, Grant()))["image"] == "notebook:1"


def test_requests_can_be_below_the_limits():
    parts = PodRules(memory_requested=0.5, cpu_requested=0.1)
    resources = resources_of(stock(), Grant(A100, 2, memory=16 * GI, cpu=2000), parts)

    assert resources == {
        "limits": {"memory": "16Gi", "cpu": "2", "nvidia.com/gpu": "2"},
        "requests": {"memory": "8Gi", "cpu": "200m", "nvidia.com/gpu": "2"},
    }


@pytest.mark.parametrize(
    ("count", "text"), [(8 * GI, "8Gi"), (1536 * 1024**2, "1536Mi"), (8 * 10**9 + 1, "8000000001")]
)
def test_memory_is_written_to_the_byte(count, text):
    assert resources_of(stock(), Grant(memory=count))["limits"]["memory"] == text


def test_no_other_accelerators_resource_is_requested():
    before = stock(extra_resource_limits={"nvidia.com/gpu": "1"})
    rules = PodRules(accelerators=ALL)

    of_slice = resources_of(before, Grant(MIG, 1), rules)
    assert of_slice["limits"] == {"nvidia.com/mig-1g.5gb": "1"}
    assert resources_of(before, Grant(), rules) == {"limits": {}, "requests": {}}


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "amd.com/gpu"])
def test_a_server_that_the_administrator_gives_a_gpu_sees_it_also_if_no_node_has_one_now(resource):
    made = apply(stock(extra_resource_limits={resource: "1"}), Grant())

    assert server(made)["resources"]["limits"] == {resource: "1"}
    assert environment(made) == {}


def test_the_image_is_the_one_granted():
    granted = Grant(image=OFFERS.images["pytorch"])

    assert server(apply(stock(), granted))["image"] == "quay.io/jupyter/pytorch-notebook:cuda12"


def test_a_server_reads_of_the_memory_and_the_cpu_that_were_granted():
    configured = stock(env={"MEM_LIMIT": "8589934592", "CPU_GUARANTEE": "0.5", "KEPT": "yes"})
    parts = PodRules(memory_requested=0.5, cpu_requested=0.1)

    assert environment(apply(configured, Grant(memory=16 * GI, cpu=1500), parts)) == {
        "KEPT": "yes",
        "MEM_LIMIT": str(16 * GI),
        "MEM_GUARANTEE": str(8 * GI),
        "CPU_LIMIT": "1.5",
        "CPU_GUARANTEE": "0.15",
        "GPUSPAWNER_GPUS": "0",
        "NVIDIA_VISIBLE_DEVICES": "void",
    }


def test_variables_that_refer_to_the_memory_come_after_it():
    configured = stock(env={"MEM_LIMIT": "1", "JAVA_TOOL_OPTIONS": "-Xmx$(MEM_LIMIT)"})

    names = list(environment(apply(configured, Grant(memory=16 * GI))))

    assert names.index("MEM_LIMIT") < names.index("JAVA_TOOL_OPTIONS")


def test_a_server_finds_its_grant_in_its_environment():
    seen = environment(apply(stock(env={"NCCL_DEBUG": "WARN", "KEPT": "yes"}), Grant(A100, 2)))

    assert seen == {
        "KEPT": "yes",
        "NCCL_DEBUG": "INFO",
        "GPUSPAWNER_ACCELERATOR": "a100",
        "GPUSPAWNER_GPUS": "2",
    }


def test_a_server_without_a_gpu_sees_none():
    made = apply(stock(env={"NVIDIA_VISIBLE_DEVICES": "all"}), Grant())

    assert environment(made) == {"NVIDIA_VISIBLE_DEVICES": "void", "GPUSPAWNER_GPUS": "0"}
    assert "affinity" not in made["spec"]


@pytest.mark.parametrize(
    ("env", "seen"), [({"NVIDIA_VISIBLE_DEVICES": "0,1"}, "0,1"), ({}, "void")]
)
def test_a_server_keeps_the_gpus_that_a_hub_without_accelerators_shows_it(env, seen):
    made = apply(stock(env=env), Grant(), PodRules(keeps_environment=True))

    assert environment(made) == {"NVIDIA_VISIBLE_DEVICES": seen, "GPUSPAWNER_GPUS": "0"}


def test_what_hides_gpus_goes_if_a_later_hook_gives_a_gpu():
    made = apply(stock(env={"KEPT": "yes"}), Grant())
    assert showing_gpus(made, EVERYWHERE) == made

    made["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "1"
    assert environment(showing_gpus(made, EVERYWHERE)) == {"KEPT": "yes"}


def test_the_administrator_sets_the_environment_of_servers_without_a_gpu():
    made = apply(stock(), Grant(), PodRules(cpu_environment={"CUDA_VISIBLE_DEVICES": ""}))

    assert environment(made) == {"CUDA_VISIBLE_DEVICES": "", "GPUSPAWNER_GPUS": "0"}


def test_a_server_without_a_gpu_can_be_kept_off_the_accelerators_nodes():
    made = apply(stock(), Grant(), PodRules(cpu_avoids=(A100, MIG, BARE)))

    assert terms(made) == [
        {
            "matchExpressions": [
                {"key": "gpu", "operator": "NotIn", "values": ["a100"]},
                {"key": "mig", "operator": "NotIn", "values": ["1g", "all"]},
                {"key": "gpu", "operator": "NotIn", "values": ["bare"]},
            ],
            "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["dgx"]}],
        }
    ]


def test_both_selectors_together_name_the_nodes_to_avoid():
    terms_of_zones = [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]
    zoned = accelerator(node_selector={"pool": "gpu"}, node_affinity=terms_of_zones)
    made = apply(stock(), Grant(), PodRules(cpu_avoids=(zoned,)))

    assert [term["matchExpressions"] for term in terms(made)] == [
        [{"key": "pool", "operator": "NotIn", "values": ["gpu"]}],
        [{"key": "zone", "operator": "DoesNotExist"}],
    ]


def test_selectors_are_added_to_the_administrators():
    made = apply(stock(node_selector={"pool": "users"}), Grant(A100, 1))

    assert made["spec"]["nodeSelector"] == {"pool": "users", "gpu": "a100"}


def test_terms_are_crossed_with_the_administrators_terms():
    a, b = ({"key": "zone", "operator": "In", "values": [it]} for it in "ab")
    zones = [{"matchExpressions": [it]} for it in (a, b)]
    made = apply(stock(node_affinity_required=zones), Grant(MIG, 1))

    mig = {"key": "mig", "operator": "In", "values": ["1g", "all"]}
    assert [it["matchExpressions"] for it in terms(made)] == [[a, mig], [a], [b, mig], [b]]
    assert [bool(term.get("matchFields")) for term in terms(made)] == [False, True, False, True]


def test_other_affinity_stays():
    term = {"matchExpressions": [{"key": "a", "operator": "In"}]}
    preferred = [{"weight": 1, "preference": term}]
    made = apply(stock(node_affinity_preferred=preferred), Grant(MIG, 1))

    node = made["spec"]["affinity"]["nodeAffinity"]
    assert len(node["preferredDuringSchedulingIgnoredDuringExecution"]) == 1
    assert len(terms(made)) == 2


def test_a_toleration_is_not_repeated():
    had = [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": ""},
        {"key": "hub", "operator": "Equal", "value": "user"},
    ]
    made = apply(stock(tolerations=had), Grant(A100, 1))

    keys = [toleration["key"] for toleration in made["spec"]["tolerations"]]
    assert keys == ["nvidia.com/gpu", "hub"]


grants = st.builds(
    Grant,
    accelerator=st.sampled_from(ALL),
    gpus=st.integers(1, 8),
    image=st.none() | st.just(OFFERS.images["pytorch"]),
    memory=st.none() | st.integers(1, 2**40),
    cpu=st.none() | st.integers(1, 64_000),
) | st.builds(Grant, memory=st.none() | st.integers(1, 2**40))
KEEPING = PodRules(keeps_environment=True)
rules = st.sampled_from([PodRules(), KEEPING, PodRules(accelerators=ALL, cpu_avoids=ALL)])
ZONED = [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]
BOTH = {"nvidia.com/gpu": "1", "nvidia.com/mig-1g.5gb": "1"}
pods = st.builds(
    stock,
    env=st.dictionaries(
        st.sampled_from(["A", "NCCL_DEBUG", "NVIDIA_VISIBLE_DEVICES"]), st.just("x")
    ),
    node_selector=st.sampled_from([None, {"pool": "users"}]),
    tolerations=st.sampled_from([None, [{"key": "nvidia.com/gpu", "operator": "Exists"}]]),
    node_affinity_required=st.sampled_from([None, ZONED]),
    extra_resource_limits=st.sampled_from([None, BOTH]),
)


@given(pods, grants, rules)
def test_apply_never_changes_the_given_pod(pod, grant, common):
    before = copy.deepcopy(pod)
    made = apply(pod, grant, common)
    made["spec"]["containers"][0]["env"].clear()
    made["spec"]["containers"][0]["resources"]["limits"].clear()

    assert pod == before


@given(pods, grants, rules)
def test_applying_a_grant_twice_changes_nothing_more(pod, grant, common):
    once = apply(pod, grant, common)

    assert apply(once, grant, common) == once


# Volumes and shared memory, and their conflicts with the pod


def test_a_pod_gets_the_accelerators_volumes_and_runtime_class():
    made = apply(stock(volumes=[{"name": "home", "emptyDir": {}}]), Grant(A100, 1))

    names = [volume["name"] for volume in made["spec"]["volumes"]]
    assert names == ["home", "models", "gpuspawner-shared-memory"]
    models = {"name": "models", "mountPath": "/models", "readOnly": True}
    assert server(made)["volumeMounts"][0] == models
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
        {"node_selector": {"gpu": "users"}},
        "its node_selector wants gpu=a100, but KubeSpawner's configuration wants gpu=users",
    ),
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
    lost = accelerator(volume_mounts=[{"name": "data", "mountPath": "/d"}])

    with pytest.raises(ManifestError, match="volume_mounts names 'data', but the pod has no such"):
        apply(stock(), Grant(lost, 1))
    assert apply(stock(volumes=[{"name": "data", "emptyDir": {}}]), Grant(lost, 1))


# Keeping servers without a GPU off the accelerators' nodes


LABELS = ("a", "b", "c")


def avoiding(*selectors):
    configured = {f"m{n}": {"node_selector": labels} for n, labels in enumerate(selectors)}
    return write(off(Offers.parse(accelerators=configured).accelerators.values()))


@pytest.mark.parametrize(
    ("shared", "terms"), [({}, 1), ({"pool": "gpu"}, 2)], ids=["one label each", "one in common"]
)
def test_many_models_make_few_terms(shared, terms):
    assert len(avoiding(*({**shared, "gpu": f"model-{it}"} for it in range(50)))) == terms


def test_too_many_terms_are_an_error_that_names_the_accelerator():
    named = rf"\['m{MOST_TERMS.bit_length() - 1}'\]: .* one label alone"
    with pytest.raises(ManifestError, match=named):
        avoiding(*({f"a{number}": "x", f"b{number}": "y"} for number in range(60)))


selectors = st.lists(
    st.dictionaries(st.sampled_from(LABELS), st.sampled_from("xy"), min_size=1), max_size=4
)


@given(selectors)
def test_a_node_matches_exactly_if_no_accelerator_could_run_there(given):
    terms = avoiding(*given)

    for values in product(("x", "y", None), repeat=len(LABELS)):
        node = {label: value for label, value in zip(LABELS, values, strict=True) if value}
        could_run = any(labels.items() <= node.items() for labels in given)
        assert not terms or any(_matches(term, node) for term in terms) != could_run


def _matches(term, node):
    lines = term["matchExpressions"]
    assert isinstance(lines, list)
    assert {line["operator"] for line in lines} == {"NotIn"}
    return all(node.get(line["key"]) not in line["values"] for line in lines)


def test_only_the_server_leaves_its_last_words():
    """Its owner reads them, and other containers may know what users mustn't."""
    pod = {
        "spec": {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "c"}]}
    }

    spec = with_last_words(pod)["spec"]

    policy = {"terminationMessagePolicy": "FallbackToLogsOnError"}
    assert spec["containers"] == [{"name": "a", **policy}, {"name": "b"}]
    assert spec["initContainers"] == [{"name": "c"}]
    assert pod["spec"]["containers"][0] == {"name": "a"}


def test_what_the_administrator_has_set_stays():
    own = {"name": "a", "terminationMessagePolicy": "File"}
    assert with_last_words({"spec": {"containers": [own]}})["spec"]["containers"] == [own]
