"""The accelerator and the choices that the form starts with."""

import pytest

from gpuspawner.offers.offers import Offers
from gpuspawner.offers.shapes import Memory, OfferError
from gpuspawner.offers.types import Default
from tests.unit.makers.configured import accelerator, offers

GI = 1024**3


def test_the_first_accelerator_is_the_default_unless_another_is_named():
    assert offers().default_accelerator == "a100"
    assert offers(default_accelerator="T4").default_accelerator == "t4"
    assert offers(default_accelerator="").default_accelerator is None
    assert Offers.parse().default_accelerator is None


def test_an_omitted_option_is_the_configured_default_or_the_first():
    read = offers(memory_choices=["8Gi", "16Gi"])

    assert read.choices(read.accelerators["a100"]).default.gpus == 2
    assert read.choices(read.accelerators["t4"]).default == Default(
        1, "minimal", Memory("8Gi", 8 * GI), None
    )
    assert read.choices(None).default.gpus == 0


def test_discovered_accelerators_are_never_the_default():
    read = offers().with_accelerators([accelerator()])

    assert list(read.accelerators) == ["t4"]
    assert read.default_accelerator is None


ERRORS = [
    ("default", {"gpus": 3}, ".default.gpus: 3 is not among the choices"),
    ("default", {"memory": "4Gi"}, ".default.memory: '4Gi' is not among the choices"),
    ("default", {"image": "torch"}, ".default.image: 'torch' is not among the choices"),
    ("default", {"cpus": 1}, ".default: unknown key 'cpus' (did you mean 'cpu'?)"),
]


@pytest.mark.parametrize(("field", "value", "message"), ERRORS)
def test_an_error_in_the_default_of_an_accelerator_names_the_field(field, value, message):
    with pytest.raises(OfferError) as raised:
        accelerator(**{field: value})

    assert str(raised.value).startswith(f"GPUSpawner.accelerators['t4']{message}")


TRAIT_ERRORS = [
    ({"default_accelerator": "h100"}, "GPUSpawner.default_accelerator: there is no accelerator"),
    ({"default_accelerator": 1}, "GPUSpawner.default_accelerator: 1 is not text; write it in"),
]


@pytest.mark.parametrize(("traits", "message"), TRAIT_ERRORS)
def test_an_error_in_the_default_accelerator_names_the_trait(traits, message):
    with pytest.raises(OfferError) as raised:
        offers(**traits)

    assert str(raised.value).startswith(message)
    assert raised.value.trait == "default_accelerator"
