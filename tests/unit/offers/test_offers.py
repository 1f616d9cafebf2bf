"""How the offers are read from the configuration."""

import copy
from collections import UserDict
from types import MappingProxyType

import pytest
from traitlets.config import Config

from gpuspawner.offers import Default, Memory, Offers, ScaleUp
from tests.unit.offers.configured import A100, IMAGES, T4, accelerator, offers

pytestmark = pytest.mark.each_python

GI = 1024**3


def test_all_fields_of_an_accelerator_are_read():
    a100 = offers().accelerators["a100"]

    assert a100.display_name == "NVIDIA A100"
    assert a100.counts == (1, 2, 4)
    assert a100.node_selector == {"nvidia.com/gpu.product": "A100-SXM4-80GB"}
    assert a100.node_affinity[0]["matchExpressions"][0]["values"] == ("a", "b")
    assert a100.tolerations[1] == {"key": "sku", "operator": "Equal", "value": "gpu"}
    assert a100.environment == {"NCCL_DEBUG": "INFO"}
    assert a100.volumes[0]["hostPath"] == {"path": "/srv/models"}
    assert a100.volume_mounts[0]["readOnly"] is True
    assert a100.runtime_class == "nvidia"
    assert a100.shared_memory == 8 * GI
    assert a100.memory_choices == (Memory("32Gi", 32 * GI), Memory("64Gi", 64 * GI))
    assert a100.cpu_choices == (4000, 500)
    assert a100.default == Default(2, "pytorch", Memory("64Gi", 64 * GI), 500)
    assert a100.scale_up == ScaleUp(max_nodes=4, minutes=8)


def test_an_accelerator_needs_only_a_selector():
    t4 = offers().accelerators["t4"]

    assert t4.display_name == "t4"
    assert t4.resource == "nvidia.com/gpu"
    assert t4.counts == (1,)
    assert t4.memory_choices is None


def test_the_resource_of_the_old_device_plugin_is_accepted():
    old = "alpha.kubernetes.io/nvidia-gpu"

    assert accelerator(resource=old).resource == old


def test_a_resource_in_the_domain_of_kubernetes_need_not_be_named_in_a_quota():
    longest = f"{'a' * 63}.{'b' * 63}.{'c' * 63}.{'d' * 47}.kubernetes.io/x"

    assert accelerator(resource=longest).resource == longest


def test_null_means_the_default():
    assert accelerator(scale_up=None, counts=None) == accelerator()
    assert accelerator(tolerations=[{"operator": "Exists", "key": None}]).tolerations == (
        {"operator": "Exists"},
    )


def test_any_kind_of_mapping_list_or_text_is_read():
    class Word(str):
        __slots__ = ()

    class Number(float):
        __slots__ = ()

    odd = accelerator(
        node_selector=Config(gpu=Word("t4")),
        node_affinity=(MappingProxyType(A100["node_affinity"][0]),),
        scale_up=UserDict({Word("max_nodes"): 1, "minutes": Number(0.5)}),
        memory_choices=("8Gi",),
        cpu_choices=[Number(0.5)],
    )

    assert odd.node_selector == {"gpu": "t4"}
    assert odd.node_affinity[0]["matchExpressions"][0]["values"] == ("a", "b")
    assert odd.scale_up == ScaleUp(1, 0.5)
    assert odd.cpu_choices == (500,)


def test_offers_do_not_change_when_the_configuration_does():
    configured = copy.deepcopy(A100)
    read = Offers.parse(accelerators={"a100": configured}, images=IMAGES).accelerators["a100"]
    configured["node_affinity"][0]["matchExpressions"].clear()
    configured["environment"]["NCCL_DEBUG"] = "WARN"

    assert read == offers().accelerators["a100"]


def test_offers_cannot_be_changed():
    a100 = offers().accelerators["a100"]

    with pytest.raises(TypeError):
        a100.node_selector["x"] = "y"
    with pytest.raises(TypeError):
        a100.tolerations[0]["key"] = "other"


def test_an_accelerator_is_found_regardless_of_case():
    read = offers()

    assert read.accelerator("A100") is read.accelerators["a100"]
    assert read.accelerator("h100") is None


def test_sizes_of_an_accelerator_replace_those_of_the_hub():
    both = offers(memory_choices=["8Gi", "16Gi"], cpu_choices=[2])

    assert [m.text for m in both.choices(both.accelerators["a100"]).memory] == ["32Gi", "64Gi"]
    assert [m.text for m in both.choices(both.accelerators["t4"]).memory] == ["8Gi", "16Gi"]
    assert both.choices(None).cpu == (2000,)


def test_an_empty_list_of_sizes_removes_the_choice():
    read = Offers.parse(accelerators={"t4": {**T4, "memory_choices": []}}, memory_choices=["8Gi"])

    assert read.choices(read.accelerators["t4"]).memory == ()


def test_images_are_offered_only_with_their_accelerators():
    read = offers(images={**IMAGES, "plain": {"image": "plain:1", "accelerators": [None, "t4"]}})

    def keys(key: str | None) -> list[str]:
        return [i.key for i in read.choices(read.accelerators[key] if key else None).images]

    assert keys("a100") == ["minimal", "pytorch"]
    assert keys("t4") == ["minimal", "plain"]
    assert keys(None) == ["minimal", "plain"]


def test_images_may_name_accelerators_that_are_not_discovered_yet():
    read = Offers.parse(images={"pytorch": {"image": "p:1", "accelerators": ["a100"]}})

    assert read.images["pytorch"].accelerators == {"a100"}
