"""The options of a request; tests/hub/gates/test_hostile_bodies.py tests them in a hub."""

import json
from typing import Any

import pytest

from gpuspawner.compat.jupyterhub import COUNTS_REFUSALS
from gpuspawner.start import request_options
from gpuspawner.start.refusal import Refusal

pytestmark = pytest.mark.each_python


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ({"opt-gpus": ["2"]}, {"gpus": ["2"]}),
        ({"gpus": ["2"], "display_name": ["mine"]}, {"gpus": ["2"]}),
        ({"opt-gpus": ["2"], "image": ["x"]}, {"gpus": ["2"]}),
        ({}, {}),
    ],
)
def test_options_of_a_query_lose_their_prefix(query: Any, options: Any) -> None:
    assert request_options.option_names(query) == options


NOTED = {"note": "{" * 1_000 + "[" * 1_000, "accelerator": None}


@pytest.mark.parametrize(
    ("body", "options"),
    [
        (b"", None),
        (b"null", None),
        (b" null\n", None),
        (b" {}\r\n", {}),
        (b"[1]", [1]),
        pytest.param(json.dumps(NOTED).encode(), NOTED, id="brackets within a text"),
    ],
)
def test_a_body_is_read_as_json_and_an_empty_one_has_no_options(body: bytes, options: Any) -> None:
    """What isn't an object is for the parser to refuse."""
    assert request_options.options_in(body) == options


@pytest.mark.parametrize(
    "body",
    [
        b" ",
        b"gpus=2",
        b"\xff",
        b'{"image": "sm\xff"}',
        b'\x0b{"image": "small"}',
        b'{"image": "small"}\x0c',
        '{"image": "small"}\u00a0'.encode(),
        '\ufeff{"image": "small"}'.encode(),
        '{"image": "small"}'.encode("utf-16"),
        b'{"image": "small"} {}',
    ],
)
def test_a_body_that_is_not_json_in_utf_8_is_unreadable(body: bytes) -> None:
    with pytest.raises(Refusal, match="isn't JSON in UTF-8") as unreadable:
        request_options.options_in(body)

    assert unreadable.value.slug == "invalid-options"


@pytest.mark.parametrize("depth", [101, 950, 10_000, 1_000_000])
def test_a_body_of_any_depth_does_not_exhaust_the_stack(depth: int) -> None:
    lists, objects = b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth

    assert request_options.options_in(lists) == request_options.TOO_MUCH
    assert request_options.options_in(objects) == request_options.TOO_MUCH


def _nested(depth: int) -> object:
    value: object = 0
    for number in range(depth):
        value = [value] if number % 2 else {"a": value}
    return value


def _doubled(depth: int) -> object:
    value: object = 0
    for _ in range(depth):
        value = [value, value]
    return value


@pytest.mark.parametrize(
    ("value", "is_within"),
    [
        ({"accelerator": "t4", "gpus": 2}, True),
        ("x" * 1_000_000, True),
        ({str(number): number for number in range(2_000)}, True),
        (_nested(100), True),
        (_nested(101), False),
        (_nested(100_000), False),
        ({"mounts": [{"path": "/a"}] * 150}, True),
        ([[]] * 10_000, True),
        ([[]] * 10_001, False),
        (_doubled(100), False),
        ([0] * 10_001, False),
        (([0] * 5_001, [0] * 5_001), False),
    ],
    ids=[
        *("options", "long", "wide", "deep", "too deep", "far too deep"),
        *("objects", "lists", "too many lists", "shared lists", "list", "tuple"),
    ],
)
def test_options_of_any_structure_are_bounded(value: object, is_within: bool) -> None:
    assert request_options.is_within_bounds(value) is is_within


@pytest.mark.each_hub
@pytest.mark.skipif(COUNTS_REFUSALS, reason="version: JupyterHub 6 brought named fields")
@pytest.mark.parametrize(
    ("body", "options"),
    [
        ({"user_options": {"gpus": 2}, "display_name": "mine"}, {"gpus": 2}),
        ({"user_options": {}}, {}),
        ({"user_options": None}, None),
        ({"display_name": "mine"}, None),
        ({"gpus": 2}, {"gpus": 2}),
    ],
)
def test_jupyterhub_6_puts_options_into_a_field_of_the_body(body: Any, options: Any) -> None:
    assert request_options.options_in(json.dumps(body).encode()) == options
