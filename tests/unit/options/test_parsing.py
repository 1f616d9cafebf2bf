"""What people may ask for, and what they are told when they may not."""

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.offers import Offers
from gpuspawner.options import (
    FieldError,
    Gone,
    GPURequest,
    fall_back,
    from_form,
    keep,
    parse,
    user_options,
)

OFFERS = Offers.parse(
    accelerators={
        "a100": {
            "display_name": "NVIDIA A100",
            "counts": [1, 2, 4],
            "node_selector": {"gpu": "a100"},
            "memory_choices": ["32Gi", "64Gi"],
            "default": {"gpus": 2, "image": "pytorch", "memory": "64Gi"},
        },
        "t4": {"display_name": "NVIDIA T4", "node_selector": {"gpu": "t4"}},
    },
    images={
        "minimal": {"image": "minimal:1"},
        "pytorch": {"image": "pytorch:1", "accelerators": ["a100"]},
    },
    memory_choices=["8Gi", "16Gi"],
    cpu_choices=[2, "500m"],
)
BARE = Offers.parse(accelerators={"t4": {"node_selector": {"gpu": "t4"}}})
DEFAULTS = GPURequest("a100", 2, "pytorch", "64Gi", 2)


def error(raw: object, offers: Offers = OFFERS) -> str:
    errors = parse(raw, offers)
    assert isinstance(errors, tuple)
    return "; ".join(f"{error.field}: {error.text}" for error in errors)


def test_an_empty_body_is_the_configured_defaults():
    assert parse({}, OFFERS) == DEFAULTS


def test_what_is_left_out_is_the_default_of_what_was_chosen():
    assert parse({"accelerator": "t4"}, OFFERS) == GPURequest("t4", 1, "minimal", "8Gi", 2)
    assert parse({"memory": "32Gi"}, OFFERS) == GPURequest("a100", 2, "pytorch", "32Gi", 2)


def test_null_for_anything_but_the_accelerator_is_left_out():
    raw = {"gpus": None, "image": None, "memory": None, "cpu": None}

    assert parse(raw, OFFERS) == DEFAULTS


def test_no_accelerator_is_a_choice_of_its_own():
    plain = GPURequest(None, 0, "minimal", "8Gi", 2)

    assert parse({"accelerator": None}, OFFERS) == plain
    assert parse({"gpus": 0}, OFFERS) == plain


def test_a_whole_request_is_taken_as_it_is():
    raw = {"accelerator": "a100", "gpus": 4, "image": "minimal", "memory": "32Gi", "cpu": 0.5}

    assert user_options(parse(raw, OFFERS)) == raw


def test_names_are_found_whatever_their_capitals_and_sizes_by_their_amount():
    raw = {"accelerator": "A100", "image": "PyTorch", "memory": "32768Mi", "cpu": 2.0}

    assert parse(raw, OFFERS) == GPURequest("a100", 2, "pytorch", "32Gi", 2)


def test_where_nothing_is_configured_nothing_is_chosen():
    assert parse({}, BARE) == GPURequest("t4", 1)


def test_a_count_alone_means_the_only_accelerator_there_is():
    one = Offers.parse().with_accelerators([OFFERS.accelerators["t4"]])
    two = Offers.parse().with_accelerators(OFFERS.accelerators.values())

    assert parse({"gpus": 1}, one) == GPURequest("t4", 1)
    assert error({"gpus": 1}, two) == "accelerator: choose which one: a100, t4 or null for none"
    assert parse({}, two) == GPURequest()


ERRORS = [
    ({"accelerator": "h100"}, "accelerator: 'h100' is not on offer (did you mean 'a100'?); choose"),
    (
        {"accelerator": "tpu"},
        "accelerator: 'tpu' is not on offer; choose a100, t4 or null for none",
    ),
    ({"accelerator": ["a100"]}, "accelerator: a list is not text; choose a100"),
    ({"accelerator": 1}, "accelerator: 1 is not text; choose a100"),
    ({"gpus": 3}, "gpus: 3 is not on offer with NVIDIA A100; choose 1, 2 or 4"),
    ({"accelerator": "a100", "gpus": 0}, "gpus: 0 is not on offer with NVIDIA A100; choose 1, 2"),
    ({"accelerator": None, "gpus": 1}, "gpus: 1 is not on offer without a GPU model; choose 0"),
    ({"gpus": "2"}, "gpus: '2' is not a number; choose 1, 2 or 4"),
    ({"gpus": True}, "gpus: true is not a number; choose 1, 2 or 4"),
    ({"gpus": [[[]]]}, "gpus: a list is not a number; choose 1, 2 or 4"),
    ({"gpus": 10**5000}, "gpus: a very large number is not on offer with NVIDIA A100; choose 1"),
    ({"image": "torch"}, "image: 'torch' is not on offer with NVIDIA A100; choose minimal or pyt"),
    ({"accelerator": "t4", "image": "pytorch"}, "image: 'pytorch' is not on offer with NVIDIA T4;"),
    ({"image": {"a": 1}}, "image: an object is not text; choose minimal or pytorch"),
    ({"memory": "16Gi"}, "memory: '16Gi' is not on offer with NVIDIA A100; choose 32Gi or 64Gi"),
    ({"memory": 34359738368}, "memory: 34359738368 is not text; choose 32Gi or 64Gi"),
    ({"memory": "1e400"}, "memory: '1e400' is not on offer with NVIDIA A100; choose 32Gi or 64Gi"),
    (
        {"memory": "0" * 50 + "32Gi"},
        "memory: '0000000000000000000000000000000000000000…' is not on",
    ),
    ({"memory": "-1Gi"}, "memory: '-1Gi' is not on offer with NVIDIA A100; choose 32Gi or 64Gi"),
    ({"cpu": 3}, "cpu: 3 is not on offer with NVIDIA A100; choose 2 or 0.5"),
    ({"cpu": float("nan")}, "cpu: nan is not on offer with NVIDIA A100; choose 2 or 0.5"),
    ({"memroy": "1Gi"}, ": there is no option 'memroy' (did you mean 'memory'?); there are accel"),
    ({"profile": 1, "b": 2, "c": 3, "d": 4}, ": there is no option 'profile', 'b', 'c' and 1 more"),
    ([], ": a list is not a set of options; send an object with accelerator, gpus, image, memory"),
    ("a100", ": 'a100' is not a set of options; send an object with accelerator, gpus, image"),
    (None, ": null is not a set of options; send an object with accelerator, gpus, image"),
]


@pytest.mark.parametrize(("raw", "message"), ERRORS, ids=range(len(ERRORS)))
def test_an_error_names_the_field_and_what_is_allowed(raw, message):
    assert error(raw).startswith(message)


def test_a_choice_that_is_not_one_is_refused_where_nothing_is_configured():
    assert error({"image": "evil:latest"}, BARE) == (
        "image: there is no choice of image with t4; leave it out"
    )


def test_all_that_is_wrong_is_told_at_once():
    errors = parse({"gpus": 9, "memory": "1Ti", "node_selector": {}}, OFFERS)

    assert [error.field for error in errors] == ["", "gpus", "memory"]


def test_a_form_of_empty_fields_is_the_defaults_without_an_accelerator():
    form = {"accelerator": [""], "image": [""], "_xsrf": ["2|x"]}

    assert from_form(form) == {"accelerator": None, "image": None}


def test_in_a_form_a_field_counts_where_its_accelerator_is_chosen():
    form = {
        "accelerator": ["a100"],
        "gpus--a100": ["4"],
        "gpus--t4": ["1"],
        "memory--a100": ["32Gi"],
        "memory": ["8Gi"],
        "cpu": ["0.5"],
    }

    assert from_form(form) == {
        "accelerator": "a100",
        "gpus": 4,
        "memory": "32Gi",
        "cpu": 0.5,
    }


def test_a_field_of_an_accelerator_is_known_however_its_key_is_written():
    query = {"accelerator": ["A100"], "gpus--a100": ["4"]}

    assert from_form(query) == {"accelerator": "A100", "gpus": 4}


@pytest.mark.parametrize("text", ["1e3", "-1", " 1", "٣", "0x1", "9" * 10, "1,5"])
def test_in_a_form_a_number_is_written_in_plain_digits(text):
    assert from_form({"gpus": [text]}) == {"gpus": text}


def test_a_form_that_chooses_twice_is_refused():
    assert error(from_form({"accelerator": ["a100", "t4"]})).startswith("accelerator: a list is")


def test_in_a_form_what_is_written_in_comes_before_what_is_chosen_from_the_list():
    form = {"image": ["minimal"], "unlisted_image": [" ghcr.io/a:1 "], "unlisted_memory": [""]}

    assert from_form(form) == {"image": "ghcr.io/a:1"}


def test_other_fields_of_a_form_are_refused_by_name():
    assert error(from_form({"profile": ["x"]})).startswith(": there is no option 'profile'")


def test_what_is_on_offer_is_kept_when_the_rest_is_not():
    raw = {"accelerator": "a100", "gpus": 9, "memory": "32Gi", "cpu": "x", "profile": 1}

    assert keep(raw, OFFERS) == GPURequest("a100", 2, "pytorch", "32Gi", 2)
    assert keep({"accelerator": "h100", "cpu": 0.5}, OFFERS).cpu == 0.5
    assert keep("nonsense", OFFERS) == DEFAULTS


def test_what_is_not_on_offer_any_more_is_named():
    raw = {"accelerator": "h100", "gpus": 8, "image": "pytorch", "memory": "8Gi", "cpu": 2}

    kept, gone = fall_back(raw, OFFERS)

    assert kept == GPURequest("a100", 2, "pytorch", "64Gi", 2)
    assert gone == (Gone("accelerator", "'h100'"), Gone("gpus", "8"), Gone("memory", "'8Gi'"))
    assert fall_back(user_options(kept), OFFERS) == (kept, ())


def test_a_count_without_a_model_starts_again_from_the_defaults():
    two = Offers.parse().with_accelerators(OFFERS.accelerators.values())

    assert keep({"gpus": 1}, two) == GPURequest()


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
names = st.sampled_from(["accelerator", "gpus", "image", "memory", "cpu", "gpus--a100"])
likely = st.sampled_from(["a100", "t4", "", 0, 1, 2, 4, "1", "pytorch", "minimal", "16Gi", 0.5])
bodies = st.dictionaries(names | st.text(string.printable), likely | anything, max_size=6)


@given(anything | bodies)
def test_whatever_is_sent_is_a_request_on_offer_or_short_errors(raw):
    read = parse(raw, OFFERS)

    if isinstance(read, GPURequest):
        choices = OFFERS.choices(OFFERS.accelerators.get(read.accelerator))
        assert read.gpus in choices.counts
        assert read.image in {image.key for image in choices.images}
        assert read.memory in {memory.text for memory in choices.memory}
        assert read.cpu * 1000 in choices.cpu
    else:
        assert all(isinstance(error, FieldError) and len(error.text) < 300 for error in read)


@given(anything | bodies)
def test_whatever_was_sent_something_on_offer_is_kept(raw):
    kept = keep(raw, OFFERS)

    assert parse(user_options(kept), OFFERS) == kept
    if isinstance(parse(raw, OFFERS), GPURequest):
        assert kept == parse(raw, OFFERS)


@given(bodies)
def test_a_request_that_was_stored_is_read_as_the_same(raw):
    read = parse(raw, OFFERS)

    if isinstance(read, GPURequest):
        assert parse(json.loads(json.dumps(user_options(read))), OFFERS) == read


@given(st.dictionaries(names | st.text(), st.lists(likely | st.text(), max_size=3), max_size=6))
def test_any_form_can_be_read(form):
    read = parse(from_form(form), OFFERS)

    assert isinstance(read, GPURequest | tuple)
