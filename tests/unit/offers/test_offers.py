"""How the offers are read from the configuration."""

import copy
import re
from collections import UserDict
from dataclasses import replace
from types import MappingProxyType

import pytest
from traitlets.config import Config

from gpuspawner.offers.offers import Offers
from gpuspawner.offers.shapes import Memory, OfferError
from gpuspawner.offers.types import Default, Image, ScaleUp
from tests.unit.makers.configured import A100, IMAGES, T4, accelerator, offers

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


@pytest.mark.each_python
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

    def keys(key):
        return [i.key for i in read.choices(read.accelerators[key] if key else None).images]

    assert keys("a100") == ["minimal", "pytorch"]
    assert keys("t4") == ["minimal", "plain"]
    assert keys(None) == ["minimal", "plain"]


def test_an_image_suits_an_accelerator_that_is_discovered_under_another_spelling():
    read = Offers.parse(images={"pytorch": {"image": "p:1", "accelerators": ["Tesla_T4", None]}})
    t4 = replace(accelerator(), key="tesla-t4")

    assert read.images["pytorch"].suits(t4)
    assert not read.images["pytorch"].suits(replace(t4, key="a100"))
    assert read.images["pytorch"].suits(None)


# Values that users may type in addition to the listed ones

LAB = {"validation_regex": r"ghcr\.io/our-lab/[a-z-]+:[0-9.]+"}


def test_only_listed_values_are_allowed_by_default():
    choices = Offers.parse(images={"lab": {"image": "lab:1"}}).choices(None)

    assert choices.unlisted_image is None
    assert choices.unlisted_memory is None
    assert choices.image("ghcr.io/our-lab/torch:1") is None


@pytest.mark.each_python
def test_an_unlisted_image_is_allowed_if_the_expression_matches_all_of_it():
    choices = Offers.parse(images={"lab": {"image": "lab:1"}}, unlisted_image=LAB).choices(None)
    written = "ghcr.io/our-lab/torch:1.0"

    assert choices.image(written) == Image(written, written, written)
    assert choices.image("lab") == Image("lab", "lab", "lab:1")
    for other in ("evil.io/ghcr.io/our-lab/torch:1", f"{written}@x", f"{written}\n", "torch"):
        assert choices.image(other) is None


def unlisted(regex):
    return Offers.parse(unlisted_image={"validation_regex": regex}).unlisted_image


@pytest.mark.each_python
def test_an_expression_of_alternatives_is_matched_as_a_whole():
    images = unlisted("lab:1|lab:2")

    assert images.image("lab:2") is not None
    assert images.image("lab:11") is None


@pytest.mark.each_python
def test_the_flags_of_a_group_hold_in_an_expression_for_images():
    images = unlisted("lab:(?i:a+)")

    assert images.image("lab:Aa") is not None
    assert images.image("lab:b") is None


@pytest.mark.each_python
@pytest.mark.parametrize(
    "regex",
    [
        "(?i)lab:a+|hub:a+",
        "(?is)(?x) lab : a+ | hub:a+ # either",
        "(?x) # in any letters\n (?i) lab:a+ | hub:a+",
        "(?u)(?:lab|hub):[aA]+",
    ],
)
def test_flags_in_front_hold_for_all_of_an_expression_as_in_kubespawner(regex):
    """JavaScript knows them only at a group, so the schema has them there."""
    images = unlisted(regex)

    assert images.image("lab:AaA") is not None
    assert images.image("hub:Aa") is not None
    assert images.image("lab:Ab") is None
    assert not re.search(r"\(\?\w+\)", images.allowed.pattern)


def test_an_invalid_reference_is_refused_even_if_the_expression_matches():
    assert unlisted(".*").image("lab; rm -rf /") is None
    assert unlisted(".*").image("a" * 10_000) is None


def test_unlisted_sizes_go_from_min_to_max_by_the_step():
    unlisted = {"min": "2Gi", "max": "7Gi", "step": "2Gi"}
    choices = Offers.parse(memory_choices=["1Gi"], unlisted_memory=unlisted).choices(None)

    assert choices.sizes == tuple(Memory(f"{n}Gi", n * GI) for n in (1, 2, 4, 6))
    assert choices.memory == (Memory("1Gi", GI),)


# The errors that an administrator reads about other traits

UNLISTED_ERRORS = [
    ("unlisted_image", [], ": a list is not a mapping"),
    ("unlisted_image", {"display_name": "Any"}, ": 'validation_regex' is missing"),
    ("unlisted_image", {"regex": "a"}, ": unknown key 'regex'; allowed are display_name"),
    ("unlisted_image", {"validation_regex": "("}, ".validation_regex: '(' is not a regular"),
    ("unlisted_image", {"validation_regex": "a)|(?:b"}, ".validation_regex: 'a)|(?:b' is not a"),
    ("unlisted_image", {"validation_regex": 1}, ".validation_regex: 1 is not text"),
    ("unlisted_image", {"validation_regex": "(" * 9999}, ".validation_regex: '(((("),
    ("unlisted_image", {"validation_regex": f"a{{{9**99}}}"}, ".validation_regex: 'a{2951"),
    ("unlisted_memory", {"min": "1Gi"}, ": 'max' is missing"),
    ("unlisted_memory", {"min": "lots", "max": "8Gi"}, ".min: 'lots' is not a size of memory"),
    ("unlisted_memory", {"min": "8Gi", "max": "4Gi"}, ".max: '4Gi' is less than the min, 8Gi"),
    ("unlisted_memory", {"min": "1Gi", "max": "2Gi", "step": "0"}, ".step: '0' is not more than"),
    ("unlisted_memory", {"min": "1Gi", "max": "1Ti"}, ": that makes 1024 sizes; use a step with"),
    ("unlisted_memory", {"min": "1Mi", "max": "7Ei", "step": "1Mi"}, ": that makes "),
    ("unlisted_memory", {"min": 1, "max": 8}, ".min: 1 is 1 bytes; write a unit, such as 8Gi"),
]
TIED_ERRORS = [
    (["a10"], "[0]: there is no accelerator 'a10' (did you mean 'a100"),
    (["tpu"], "[0]: there is no accelerator 'tpu'; there are a100 or"),
    ([], ": is empty; write at least one or leave it out"),
]
IMAGE_ERRORS = [
    ({}, ": 'image' is missing"),
    ("b:1", ": 'b:1' is not a mapping"),
    ({"image": "a b"}, ".image: 'a b' is not an image"),
    ({"image": "b:1\n"}, ".image: 'b:1\\n' is not an image"),
    *(({"image": "b:1", "accelerators": it}, f".accelerators{e}") for it, e in TIED_ERRORS),
]
TRAIT_ERRORS = [
    *(({trait: value}, f"GPUSpawner.{trait}{error}") for trait, value, error in UNLISTED_ERRORS),
    ({"default_accelerator": "h100"}, "GPUSpawner.default_accelerator: there is no accelerator"),
    ({"default_accelerator": 1}, "GPUSpawner.default_accelerator: 1 is not text; write it in"),
    ({"accelerators": []}, "GPUSpawner.accelerators: a list is not a mapping"),
    ({"accelerators": {1: T4}}, "GPUSpawner.accelerators: the key 1 is not text"),
    ({"accelerators": {"a b": T4}}, "GPUSpawner.accelerators: 'a b' cannot be a key"),
    ({"accelerators": {"A_1": T4, "a-1": T4}}, "GPUSpawner.accelerators: 'A_1' and 'a-1' are one"),
    ({"accelerators": {"k": {}}}, "GPUSpawner.accelerators['k']: 'node_selector' or 'node_affi"),
    *(({"images": {"a": it}}, f"GPUSpawner.images['a']{error}") for it, error in IMAGE_ERRORS),
    ({"memory_choices": "8Gi"}, "GPUSpawner.memory_choices: '8Gi' is not a list"),
    ({"memory_choices": ["lots"]}, "GPUSpawner.memory_choices[0]: 'lots' is not a size of memory"),
    ({"cpu_choices": [2, 2.0]}, "GPUSpawner.cpu_choices[1]: 2.0 is listed twice"),
    ({"memory_choices": {"8Gi"}}, "GPUSpawner.memory_choices: a set is not plain data"),
]


@pytest.mark.parametrize(("traits", "message"), TRAIT_ERRORS)
def test_an_error_in_a_trait_names_it(traits, message):
    with pytest.raises(OfferError) as raised:
        offers(**traits)

    assert str(raised.value).startswith(message)
    assert raised.value.trait == next(iter(traits))
