"""Options that users may send, and the errors in others."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.offers.offers import Offers
from gpuspawner.offers.options import FieldError
from gpuspawner.offers.user_options import (
    Gone,
    GPURequest,
    fall_back,
    from_form,
    parse,
    user_options,
)
from tests.unit.makers.anything import anything

pytestmark = pytest.mark.each_python

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


def error(raw, offers=OFFERS):
    errors = parse(raw, offers)
    assert isinstance(errors, tuple)
    return "; ".join(f"{error.field}: {error.text}" for error in errors)


def test_an_option_that_is_left_out_gets_the_default_of_the_accelerator():
    assert parse({"accelerator": "t4"}, OFFERS) == GPURequest("t4", 1, "minimal", "8Gi", 2)
    assert parse({"memory": "32Gi"}, OFFERS) == GPURequest("a100", 2, "pytorch", "32Gi", 2)


def test_what_is_left_out_or_null_gets_the_configured_defaults_but_for_a_null_accelerator():
    raw = {"gpus": None, "image": None, "memory": None, "cpu": None}

    assert parse({}, OFFERS) == parse(raw, OFFERS) == DEFAULTS


def test_a_server_without_an_accelerator_can_be_chosen():
    plain = GPURequest(None, 0, "minimal", "8Gi", 2)

    assert parse({"accelerator": None}, OFFERS) == plain
    assert parse({"gpus": 0}, OFFERS) == plain


def test_a_complete_request_stays_as_it_is():
    raw = {"accelerator": "a100", "gpus": 4, "image": "minimal", "memory": "32Gi", "cpu": 0.5}

    assert user_options(parse(raw, OFFERS)) == raw


def test_keys_match_in_any_case_and_sizes_by_their_number_of_bytes():
    raw = {"accelerator": "A100", "image": "PyTorch", "memory": "32768Mi", "cpu": 2.0}

    assert parse(raw, OFFERS) == GPURequest("a100", 2, "pytorch", "32Gi", 2)


def test_options_without_configured_choices_stay_empty():
    assert parse({}, BARE) == GPURequest("t4", 1)


def test_a_count_alone_means_the_only_accelerator():
    one = Offers.parse().with_accelerators([OFFERS.accelerators["t4"]])
    two = Offers.parse().with_accelerators(OFFERS.accelerators.values())

    assert parse({"gpus": 1}, one) == GPURequest("t4", 1)
    assert error({"gpus": 1}, two) == (
        "accelerator: You asked for GPUs, but didn't choose an accelerator. "
        "Choose a100, t4 or null for no GPU."
    )
    assert parse({}, two) == GPURequest()


NULL = ": Send an object with accelerator, gpus, image, memory and cpu, not null."
ERRORS = [
    (
        {"accelerator": "h100"},
        "accelerator: 'h100' isn't offered. Did you mean 'a100'? Choose a100",
    ),
    (
        {"accelerator": "tpu"},
        "accelerator: 'tpu' isn't offered. Choose a100, t4 or null for no GPU.",
    ),
    ({"accelerator": ["a100"]}, "accelerator: a list isn't text. Choose a100"),
    ({"accelerator": 1}, "accelerator: 1 isn't text. Choose a100"),
    ({"gpus": 3}, "gpus: 3 isn't offered with NVIDIA A100. Choose 1, 2 or 4."),
    ({"accelerator": "a100", "gpus": 0}, "gpus: 0 isn't offered with NVIDIA A100. Choose 1, 2"),
    ({"accelerator": None, "gpus": 1}, "gpus: 1 isn't offered without a GPU. Choose 0."),
    ({"gpus": "2"}, "gpus: '2' isn't a number. Choose 1, 2 or 4."),
    ({"gpus": True}, "gpus: true isn't a number. Choose 1, 2 or 4."),
    ({"gpus": [[[]]]}, "gpus: a list isn't a number. Choose 1, 2 or 4."),
    ({"gpus": 10**5000}, "gpus: a very large number isn't offered with NVIDIA A100. Choose 1"),
    ({"image": "torch"}, "image: 'torch' isn't offered with NVIDIA A100. Choose minimal or pyto"),
    ({"accelerator": "t4", "image": "pytorch"}, "image: 'pytorch' isn't offered with NVIDIA T4."),
    ({"image": {"a": 1}}, "image: an object isn't text. Choose minimal or pytorch."),
    ({"memory": "16Gi"}, "memory: '16Gi' isn't offered with NVIDIA A100. Choose 32Gi or 64Gi."),
    ({"memory": 34359738368}, "memory: 34359738368 isn't text. Choose 32Gi or 64Gi."),
    ({"memory": "1e400"}, "memory: '1e400' isn't offered with NVIDIA A100. Choose 32Gi or 64Gi."),
    ({"memory": "0" * 50 + "32Gi"}, f"memory: '{'0' * 40}…' isn't offered with"),
    ({"memory": "-1Gi"}, "memory: '-1Gi' isn't offered with NVIDIA A100. Choose 32Gi or 64Gi."),
    ({"cpu": 3}, "cpu: 3 isn't offered with NVIDIA A100. Choose 2 or 0.5."),
    ({"cpu": float("nan")}, "cpu: nan isn't offered with NVIDIA A100. Choose 2 or 0.5."),
    ({"memroy": "1Gi"}, ": There is no option 'memroy'. Did you mean 'memory'? The options are ac"),
    ({"x": 1, "y": 2}, ": There are no options 'x' and 'y'. The options are accelerator, gpus,"),
    (dict.fromkeys("abcd"), ": There are no options 'a', 'b', 'c' and 1 more. The options are"),
    (None, NULL),
    ([], NULL.replace("null", "a list")),
    ("a100", NULL.replace("null", "'a100'")),
]


@pytest.mark.parametrize(("raw", "message"), ERRORS, ids=range(len(ERRORS)))
def test_an_error_names_the_field_and_what_is_allowed(raw, message):
    assert error(raw).startswith(message)


def test_an_error_names_images_as_the_form_shows_them_and_by_their_keys():
    offers = Offers.parse(
        images={"py": {"display_name": "Python", "image": "py:1"}, "r": {"image": "r:1"}}
    )

    assert error({"image": "x"}, offers).endswith("without a GPU. Choose Python (py) or r.")


def test_an_option_without_configured_choices_is_refused():
    assert error({"image": "evil:latest"}, BARE) == (
        "image: This option isn't available with t4. Leave it out."
    )


def test_all_errors_are_returned_at_once():
    errors = parse({"gpus": 9, "memory": "1Ti", "node_selector": {}}, OFFERS)

    assert [error.field for error in errors] == ["", "gpus", "memory"]


def test_a_form_with_empty_fields_asks_for_the_defaults_without_an_accelerator():
    form = {"accelerator": [""], "image": [""], "_xsrf": ["2|x"]}

    assert from_form(form) == {"accelerator": None, "image": None}


def test_a_form_field_counts_if_its_accelerator_is_chosen_in_any_case():
    form = {
        "accelerator": ["a100"],
        "gpus--a100": ["4"],
        "gpus--t4": ["1"],
        "memory--a100": ["32Gi"],
        "memory": ["8Gi"],
        "cpu": ["0.5"],
    }

    assert from_form(form) == {"accelerator": "a100", "gpus": 4, "memory": "32Gi", "cpu": 0.5}
    query = {"accelerator": ["A100"], "gpus--a100": ["4"]}
    assert from_form(query) == {"accelerator": "A100", "gpus": 4}


@pytest.mark.parametrize("text", ["1e3", "-1", " 1", "٣", "0x1", "9" * 10, "1,5"])
def test_a_number_in_a_form_has_only_plain_digits(text):
    assert from_form({"gpus": [text]}) == {"gpus": text}


def test_a_form_with_two_accelerators_is_refused():
    assert error(from_form({"accelerator": ["a100", "t4"]})).startswith("accelerator: a list is")


def test_a_text_field_of_a_form_takes_precedence_over_its_list():
    form = {"image": ["minimal"], "unlisted_image": [" ghcr.io/a:1 "], "unlisted_memory": [""]}

    assert from_form(form) == {"image": "ghcr.io/a:1"}


@pytest.mark.parametrize("space", [" ", "\t\u3000"])
def test_spaces_in_a_text_field_of_a_form_are_nothing(space):
    form = {"image": ["minimal"], "unlisted_image": [space], "unlisted_memory": [space]}

    assert from_form(form) == {"image": "minimal"}


def test_unknown_fields_of_a_form_are_refused_by_name():
    assert error(from_form({"profile": ["x"]})).startswith(": There is no option 'profile'.")


def test_offered_choices_are_kept_if_others_are_not_offered():
    raw = {"accelerator": "a100", "gpus": 9, "memory": "32Gi", "cpu": "x", "profile": 1}

    assert fall_back(raw, OFFERS)[0] == GPURequest("a100", 2, "pytorch", "32Gi", 2)
    assert fall_back({"accelerator": "h100", "cpu": 0.5}, OFFERS)[0].cpu == 0.5
    assert fall_back("nonsense", OFFERS)[0] == DEFAULTS


def test_choices_that_are_no_longer_offered_are_named():
    raw = {"accelerator": "h100", "gpus": 8, "image": "pytorch", "memory": "8Gi", "cpu": 2}

    kept, gone = fall_back(raw, OFFERS)

    assert kept == GPURequest("a100", 2, "pytorch", "64Gi", 2)
    assert gone == (Gone("accelerator", "'h100'"), Gone("gpus", "8"), Gone("memory", "'8Gi'"))
    assert fall_back(user_options(kept), OFFERS) == (kept, ())


def test_a_count_without_an_accelerator_falls_back_to_the_defaults():
    two = Offers.parse().with_accelerators(OFFERS.accelerators.values())

    assert fall_back({"gpus": 1}, two)[0] == GPURequest()


names = st.sampled_from(["accelerator", "gpus", "image", "memory", "cpu", "gpus--a100"])
likely = st.sampled_from(["a100", "t4", "", 0, 1, 2, 4, "1", "pytorch", "minimal", "16Gi", 0.5])
bodies = st.dictionaries(names | st.text(string.printable), likely | anything, max_size=6)


@given(anything | bodies)
def test_any_input_gives_an_offered_request_or_short_errors(raw):
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
def test_any_input_falls_back_to_an_offered_request(raw):
    kept, _gone = fall_back(raw, OFFERS)

    assert parse(user_options(kept), OFFERS) == kept
    if isinstance(parse(raw, OFFERS), GPURequest):
        assert kept == parse(raw, OFFERS)


@given(st.dictionaries(names | st.text(), st.lists(likely | st.text(), max_size=3), max_size=6))
def test_any_form_can_be_read(form):
    read = parse(from_form(form), OFFERS)

    assert isinstance(read, GPURequest | tuple)
