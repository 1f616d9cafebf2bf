"""How a grant changes KubeSpawner's pod."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.manifest import ManifestError, PodRules, apply
from gpuspawner.offers import Offers
from gpuspawner.policy import Grant
from tests.unit.manifest.stock import (
    A100,
    ALL,
    BARE,
    GI,
    MIG,
    OFFERS,
    environment,
    server,
    stock,
    terms,
)


def test_gpus_have_equal_requests_and_limits():
    resources = server(apply(stock(), Grant(A100, 2)))["resources"]

    assert resources["limits"] == resources["requests"] == {"nvidia.com/gpu": "2"}


def test_memory_and_cpu_have_equal_requests_and_limits():
    before = stock(mem_limit=2 * GI, mem_guarantee=GI, cpu_guarantee=0.5)
    resources = server(apply(before, Grant(memory=16 * GI, cpu=1500)))["resources"]

    assert resources["limits"] == resources["requests"] == {"memory": "16Gi", "cpu": "1500m"}


def test_values_that_are_not_granted_stay_as_kubespawner_sets_them():
    before = stock(mem_limit=2 * GI, mem_guarantee=GI, extra_resource_limits={"ephemeral": "1"})

    assert server(apply(before, Grant(BARE, 1)))["resources"] == {
        "limits": {"memory": 2 * GI, "ephemeral": "1", "nvidia.com/gpu": "1"},
        "requests": {"memory": GI, "nvidia.com/gpu": "1"},
    }
    assert server(apply(before, Grant()))["image"] == "notebook:1"


def test_requests_can_be_below_the_limits():
    parts = PodRules(memory_requested=0.5, cpu_requested=0.1)
    resources = server(apply(stock(), Grant(A100, 2, memory=16 * GI, cpu=2000), parts))["resources"]

    assert resources == {
        "limits": {"memory": "16Gi", "cpu": "2", "nvidia.com/gpu": "2"},
        "requests": {"memory": "8Gi", "cpu": "200m", "nvidia.com/gpu": "2"},
    }


@pytest.mark.parametrize(
    ("count", "text"), [(8 * GI, "8Gi"), (1536 * 1024**2, "1536Mi"), (8 * 10**9 + 1, "8000000001")]
)
def test_memory_is_written_to_the_byte(count, text):
    assert server(apply(stock(), Grant(memory=count)))["resources"]["limits"]["memory"] == text


def test_no_other_accelerators_resource_is_requested():
    before = stock(extra_resource_limits={"nvidia.com/gpu": "1"})
    rules = PodRules(accelerators=ALL)

    assert server(apply(before, Grant(MIG, 1), rules))["resources"]["limits"] == {
        "nvidia.com/mig-1g.5gb": "1"
    }
    assert server(apply(before, Grant(), rules))["resources"] == {"limits": {}, "requests": {}}


def test_the_image_is_the_one_granted():
    granted = Grant(image=OFFERS.images["pytorch"])

    assert server(apply(stock(), granted))["image"] == "quay.io/jupyter/pytorch-notebook:cuda12"


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
    entry = {
        "node_selector": {"pool": "gpu"},
        "node_affinity": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}],
    }
    zoned = Offers.parse(accelerators={"zoned": entry}).accelerators["zoned"]
    made = apply(stock(), Grant(), PodRules(cpu_avoids=(zoned,)))

    assert [term["matchExpressions"] for term in terms(made)] == [
        [{"key": "pool", "operator": "NotIn", "values": ["gpu"]}],
        [{"key": "zone", "operator": "DoesNotExist"}],
    ]


def test_selectors_are_added_to_the_administrators():
    made = apply(stock(node_selector={"pool": "users"}), Grant(A100, 1))

    assert made["spec"]["nodeSelector"] == {"pool": "users", "gpu": "a100"}


def test_a_selector_that_contradicts_the_administrators_is_an_error():
    with pytest.raises(ManifestError) as raised:
        apply(stock(node_selector={"gpu": "users"}), Grant(A100, 1))

    assert str(raised.value) == (
        "GPUSpawner.accelerators['a100']: its node_selector wants gpu=a100, but KubeSpawner's "
        "configuration wants gpu=users"
    )


def test_terms_are_crossed_with_the_administrators_terms():
    zones = [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}
        for zone in ("a", "b")
    ]
    made = apply(stock(node_affinity_required=zones), Grant(MIG, 1))

    mig = {"key": "mig", "operator": "In", "values": ["1g", "all"]}
    assert [term["matchExpressions"] for term in terms(made)] == [
        [*zones[0]["matchExpressions"], mig],
        zones[0]["matchExpressions"],
        [*zones[1]["matchExpressions"], mig],
        zones[1]["matchExpressions"],
    ]
    assert [bool(term.get("matchFields")) for term in terms(made)] == [False, True, False, True]


def test_other_affinity_stays():
    preferred = [
        {"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "In"}]}}
    ]
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

    assert [toleration["key"] for toleration in made["spec"]["tolerations"]] == [
        "nvidia.com/gpu",
        "hub",
    ]


grants = st.builds(
    Grant,
    accelerator=st.sampled_from(ALL),
    gpus=st.integers(1, 8),
    image=st.none() | st.just(OFFERS.images["pytorch"]),
    memory=st.none() | st.integers(1, 2**40),
    cpu=st.none() | st.integers(1, 64_000),
) | st.builds(Grant, memory=st.none() | st.integers(1, 2**40))
rules = st.sampled_from([PodRules(), PodRules(accelerators=ALL, cpu_avoids=ALL)])
pods = st.builds(
    stock,
    env=st.dictionaries(
        st.sampled_from(["A", "NCCL_DEBUG", "NVIDIA_VISIBLE_DEVICES"]), st.just("x")
    ),
    node_selector=st.none() | st.just({"pool": "users"}),
    tolerations=st.none() | st.just([{"key": "nvidia.com/gpu", "operator": "Exists"}]),
    node_affinity_required=st.none()
    | st.just([{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]),
    extra_resource_limits=st.none()
    | st.just({"nvidia.com/gpu": "1", "nvidia.com/mig-1g.5gb": "1"}),
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


@given(pods, grants, rules)
def test_a_pod_contains_nothing_of_an_earlier_grant(pod, grant, common):
    fresh = apply(copy.deepcopy(pod), Grant(memory=GI), common)
    apply(pod, grant, common)

    assert apply(pod, Grant(memory=GI), common) == fresh
