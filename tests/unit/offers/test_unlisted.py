"""Values that users may type in addition to the listed ones."""

from __future__ import annotations

from typing import Any

import pytest

from gpuspawner.offers import Image, Memory, OfferError, Offers

pytestmark = pytest.mark.each_python

GI = 2**30
LAB = {"validation_regex": r"ghcr\.io/our-lab/[a-z-]+:[0-9.]+"}


def test_only_listed_values_are_allowed_by_default() -> None:
    choices = Offers.parse(images={"lab": {"image": "lab:1"}}).choices(None)

    assert choices.unlisted_image is None
    assert choices.unlisted_memory is None
    assert choices.image("ghcr.io/our-lab/torch:1") is None


def test_an_unlisted_image_is_allowed_if_the_expression_matches_all_of_it() -> None:
    choices = Offers.parse(images={"lab": {"image": "lab:1"}}, unlisted_image=LAB).choices(None)
    written = "ghcr.io/our-lab/torch:1.0"

    assert choices.image(written) == Image(written, written, written)
    assert choices.image("lab") == Image("lab", "lab", "lab:1")
    for other in ("evil.io/ghcr.io/our-lab/torch:1", f"{written}@x", f"{written}\n", "torch"):
        assert choices.image(other) is None


def test_an_expression_of_alternatives_is_matched_as_a_whole() -> None:
    unlisted = Offers.parse(unlisted_image={"validation_regex": "lab:1|lab:2"}).unlisted_image

    assert unlisted is not None
    assert unlisted.image("lab:2") is not None
    assert unlisted.image("lab:11") is None


def test_an_invalid_reference_is_refused_even_if_the_expression_matches() -> None:
    unlisted = Offers.parse(unlisted_image={"validation_regex": ".*"}).unlisted_image

    assert unlisted is not None
    assert unlisted.image("lab; rm -rf /") is None
    assert unlisted.image("a" * 10_000) is None


def test_unlisted_sizes_go_from_min_to_max_by_the_step() -> None:
    unlisted = {"min": "2Gi", "max": "7Gi", "step": "2Gi"}
    choices = Offers.parse(memory_choices=["1Gi"], unlisted_memory=unlisted).choices(None)

    assert choices.sizes == tuple(Memory(f"{n}Gi", n * GI) for n in (1, 2, 4, 6))
    assert choices.memory == (Memory("1Gi", GI),)


ERRORS: list[tuple[str, object, str]] = [
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
    ("unlisted_memory", {"min": "1", "max": "7Ei", "step": "1"}, ": that makes "),
]


@pytest.mark.parametrize(("trait", "value", "message"), ERRORS)
def test_an_error_names_the_field_and_its_values(trait: str, value: Any, message: str) -> None:
    with pytest.raises(OfferError) as raised:
        Offers.parse(**{trait: value})

    assert str(raised.value).startswith(f"GPUSpawner.{trait}{message}")
