"""The JSON Schema of the options accepts what the parser accepts, and nothing else."""

import json
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from gpuspawner.offers.offers import Offers
from gpuspawner.offers.options import schema
from gpuspawner.offers.user_options import GPURequest, parse, user_options
from tests.unit.makers.anything import anything

A100 = {
    "display_name": "NVIDIA A100",
    "counts": [1, 2, 4],
    "node_selector": {"gpu": "a100"},
    "memory_choices": ["32Gi", "64Gi"],
}
T4 = {"node_selector": {"gpu": "t4"}}
IMAGES = {
    "mini-mal": {"image": "minimal:1"},
    "Py.Torch": {"image": "pytorch:1", "accelerators": ["a_100"]},
}
SIZES = {"images": IMAGES, "memory_choices": ["8Gi", "16G", "1.5Gi"], "cpu_choices": [2, "500m"]}
UNLISTED = {
    "unlisted_image": {"validation_regex": r"ghcr\.io/[a-z]+:[0-9]|lab"},
    "unlisted_memory": {"min": "2Gi", "max": "6Gi", "step": "2Gi"},
}
TWO = {"a_100": A100, "t4": T4}
OFFERS = {
    "a default": Offers.parse(accelerators=TWO, **SIZES),
    "no default": Offers.parse(accelerators=TWO, default_accelerator="", **SIZES),
    "one and no default": Offers.parse(accelerators={"a_100": A100}, default_accelerator=""),
    "written in": Offers.parse(accelerators=TWO, **SIZES, **UNLISTED),
    "written in alone": Offers.parse(**UNLISTED),
    "no accelerator": Offers.parse(images={"lab": {"image": "lab:1"}}),
    "nothing": Offers.parse(),
}
VALIDATORS = {name: Draft202012Validator(schema(offers)) for name, offers in OFFERS.items()}

keys = st.sampled_from(
    [
        None,
        "a_100",
        "A-100",
        "a100",
        "a_100\n",
        " t4",
        "t4",
        "T4",
        "ｔ4",
        "lab",
        "LAB",
        "K",
        "\u212a",
    ]
)
images = st.sampled_from(
    ["mini-mal", "MINI_MAL", "py.torch", "pyxtorch", "ghcr.io/a:1", "ghcr.io/a:1\n", "ghcr.io/A:1"]
)
sizes = st.sampled_from(
    ["8Gi", "8192Mi", "8589934592", "16G", "16000M", "1.5Gi", "1536Mi", "4Gi", "4096Mi"]
) | st.sampled_from(["5Gi", "8GI", " 8Gi", "8Gi\n", "8.0Gi", "+8Gi", "08Gi", "1e400", "-1Gi"])
numbers = st.sampled_from([0, 1, 2, 4, 3, 0.5, 1.0, -0.0, True, False, "1", 10**400, -1])
bodies = st.fixed_dictionaries(
    {},
    optional={
        "accelerator": keys | anything,
        "gpus": numbers | st.none() | anything,
        "image": keys | images | anything,
        "memory": sizes | st.none() | anything,
        "cpu": numbers | anything,
        "profile": anything,
    },
)


@pytest.mark.parametrize("offers", OFFERS)
def test_the_schema_is_valid_and_can_be_written_as_json(offers):
    described = schema(OFFERS[offers])

    Draft202012Validator.check_schema(json.loads(json.dumps(described)))


@pytest.mark.parametrize("offers", OFFERS)
@settings(max_examples=300)
@given(raw=bodies | anything | st.dictionaries(st.text(string.printable), anything, max_size=2))
def test_the_schema_accepts_what_the_parser_accepts(offers, raw):
    accepted = isinstance(parse(raw, OFFERS[offers]), GPURequest)

    assert VALIDATORS[offers].is_valid(raw) == accepted


@given(st.sampled_from(sorted(OFFERS)), bodies)
def test_an_accepted_request_is_accepted_in_its_stored_form(offers, raw):
    read = parse(raw, OFFERS[offers])

    if isinstance(read, GPURequest):
        stored = json.loads(json.dumps(user_options(read)))
        assert VALIDATORS[offers].is_valid(stored)
        assert parse(stored, OFFERS[offers]) == read
