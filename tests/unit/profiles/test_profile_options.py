"""A user's choice among profiles, or the errors in it."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from gpuspawner.offers import regexes
from gpuspawner.offers.options import FieldError
from gpuspawner.profiles.profile_list import read
from gpuspawner.profiles.profile_options import Chosen, check_written, choose, keep, of_profile
from gpuspawner.start.refusal import Refusal
from tests.unit.makers.profile_lists import CPU, GPU, GPU_PROFILE, PROFILES

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
KEYS = st.sampled_from(
    ["profile", "gpus", "image", "gpus--unlisted-choice", "image--unlisted-choice", "other"]
)
VALUES = JSON | st.sampled_from(["gpu", "cpu-only", "one", "two", "base", "quay.io/a", ""])


@pytest.mark.parametrize(
    ("options", "slug"),
    [
        (None, "cpu-only"),
        ({}, "cpu-only"),
        ({"profile": ""}, "cpu-only"),
        ({"profile": None, "gpus": "nonsense of another profile"}, "cpu-only"),
        ({"profile": "gpu"}, "gpu"),
        ({"profile": "gpu", "gpus": "two", "image": ""}, "gpu"),
        ({"profile": "gpu", "image--unlisted-choice": "quay.io/a:1"}, "gpu"),
        ({"profile": "gpu", "unknown-to-kubespawner": ["left", "alone"]}, "gpu"),
    ],
)
def test_options_that_kubespawner_can_load_stay_unchanged(options, slug) -> None:
    chosen = choose(options, PROFILES)

    assert isinstance(chosen, Chosen)
    assert chosen.profile
    assert chosen.profile.slug == slug
    assert chosen.options == (options or {})


@pytest.mark.parametrize("named", [{}, {"profile": ""}, {"profile": "cpu-only"}])
def test_another_choice_names_the_profile_that_it_is_of(named) -> None:
    [cpu] = read([{**GPU, "slug": "cpu-only", "default": True}])
    option = cpu.options[0]
    chosen = choose({**named, "gpus": "one"}, (cpu,))
    assert isinstance(chosen, Chosen)

    instead = chosen.instead(option, option.choices[1])

    assert instead.options == {"profile": "cpu-only", "gpus": "two"}


@pytest.mark.parametrize(
    ("options", "settled"),
    [
        ({}, {"gpus": ["one"], "image": []}),
        ({"gpus": "", "image": None}, {"gpus": ["one"], "image": []}),
        ({"gpus": "two", "image": "base"}, {"gpus": ["two"], "image": ["base"]}),
        (
            {"gpus": "one", "image": "torch", "image--unlisted-choice": "quay.io/a"},
            {"gpus": ["one"], "image": "quay.io/a"},
        ),
        ({"size": "of a hook"}, {"gpus": ["one"], "image": []}),
    ],
)
def test_what_is_chosen_has_the_defaults_of_what_is_left_out(options, settled) -> None:
    chosen = Chosen(GPU_PROFILE, {"profile": "gpu", **options})

    assert chosen.settled == settled


def test_of_profiles_with_the_same_slug_the_first_is_chosen_as_by_kubespawner() -> None:
    later = structs.replace(GPU_PROFILE, options=())

    chosen = choose({"profile": "gpu", "gpus": "two"}, (*PROFILES, later))

    assert isinstance(chosen, Chosen)
    assert chosen.profile is GPU_PROFILE


@pytest.mark.parametrize(
    ("options", "field", "text"),
    [
        ({"profile": "gqu"}, "profile", "'gqu' isn't offered. Did you mean 'gpu'? Choose"),
        ({"profile": ["gpu"]}, "profile", "a list isn't offered. Choose cpu-only or gpu"),
        ({"profile": True}, "profile", "true isn't offered"),
        ({"profile": "gpu", "gpus": "three"}, "gpus", "'three' isn't offered. Choose one or two"),
        (
            {"profile": "gpu", "gpus": {}, "image": 1},
            "image",
            "1 isn't offered. Choose base or torch, or enter another value in image--unlisted",
        ),
        ({"profile": "gpu", "gpus": [1]}, "gpus", "a list isn't offered"),
        (
            {"profile": "gpu", "gpus--unlisted-choice": "9"},
            "gpus--unlisted-choice",
            "'9' isn't offered. Choose one or two",
        ),
        (
            {"profile": "gpu", "image--unlisted-choice": "docker.io/a"},
            "image--unlisted-choice",
            "'docker.io/a' isn't allowed. It must come from quay.io",
        ),
        ({"profile": "gpu", "image--unlisted-choice": [1]}, "image--unlisted-choice", "isn't text"),
        ([], "", "Send an object with profile, not a list."),
        ("gpu", "", "Send an object with profile, not 'gpu'."),
    ],
)
def test_options_that_kubespawner_cannot_load_are_field_errors(options, field, text) -> None:
    (error,) = _errors(options)

    assert error.field == field
    assert text in error.text


def test_an_option_without_choices_needs_a_written_in_value() -> None:
    nothing_listed = _with_option({"unlisted_choice": {"enabled": True}})

    (error,) = _errors({"profile": "free"}, nothing_listed)

    text = "Nothing is chosen. Enter another value in image--unlisted-choice."
    assert error == FieldError("image", text, "Image")


@pytest.mark.parametrize("written", [8, 0.5, -1, "8", pytest.param(10**400, id="huge")])
def test_a_number_can_be_written_in_where_kubespawner_has_nothing_match_it(written) -> None:
    """It puts numbers into the overrides as text, but matches none with an expression."""
    options = {"profile": "free", "image--unlisted-choice": written}
    free = _with_option({"unlisted_choice": {"enabled": True}})
    matched = _with_option({"unlisted_choice": {"enabled": True, "validation_regex": "^[0-9]"}})

    assert isinstance(choose(options, free), Chosen)
    check_written(options, free)
    assert isinstance(choose(options, matched), Chosen) == isinstance(written, str)


@pytest.mark.parametrize("written", [True, float("nan"), float("inf"), [8], {"a": 8}], ids=str)
def test_what_would_make_no_sense_as_text_cannot_be_written_in(written) -> None:
    free = _with_option({"unlisted_choice": {"enabled": True}})

    (error,) = _errors({"profile": "free", "image--unlisted-choice": written}, free)

    assert "isn't text" in error.text


@pytest.mark.parametrize(
    ("given", "is_a_choice"), [(2, True), (2.0, True), ("2", False), (3, False), (True, False)]
)
def test_a_choice_with_a_number_for_its_name_is_chosen_by_an_equal_number(
    given, is_a_choice
) -> None:
    numbers = _with_option({"choices": {1: {"display_name": "One"}, 2: {"display_name": "Two"}}})

    chosen = choose({"profile": "free", "image": given}, numbers)

    assert isinstance(chosen, Chosen) == is_a_choice


def test_without_profiles_any_options_are_accepted() -> None:
    assert choose({"profile": "gpu"}, ()) == Chosen(None, {"profile": "gpu"})


def test_a_broken_regex_raises() -> None:
    broken = _with_option({"unlisted_choice": {"enabled": True, "validation_regex": "("}})

    with pytest.raises(re.error):
        choose({"profile": "free", "image--unlisted-choice": "a"}, broken)


COMPILED = re.compile("^lab # or any other", re.IGNORECASE | re.VERBOSE)


@pytest.mark.parametrize("regex", ["(?i)^lab", COMPILED], ids=["flags in front", "compiled"])
@pytest.mark.parametrize(
    ("written", "is_allowed"), [("lab", True), ("LAB:1", True), ("hub", False)]
)
def test_a_regex_is_matched_as_in_kubespawner(regex, written, is_allowed) -> None:
    lenient = _with_option({"unlisted_choice": {"enabled": True, "validation_regex": regex}})

    chosen = choose({"profile": "free", "image--unlisted-choice": written}, lenient)

    assert isinstance(chosen, Chosen) is is_allowed


@pytest.mark.parametrize("regex", [b"lab", re.compile(b"lab"), ["lab"], 5])
def test_an_expression_that_is_not_text_refuses_only_what_is_written_in(regex) -> None:
    write_in = {"enabled": True, "validation_regex": regex}
    odd = _with_option({"choices": {"lab": {}}, "unlisted_choice": write_in})
    written = {"profile": "free", "image--unlisted-choice": "lab"}

    assert isinstance(choose({"profile": "free", "image": "lab"}, odd), Chosen)
    with pytest.raises(re.error, match="it isn't text"):
        choose(written, odd)
    assert keep(written, odd) == {"profile": "free"}


@pytest.mark.parametrize("written", ["a" * 60 + "!", "a" * 100_000], ids=["evil", "long"])
def test_a_value_that_takes_too_long_to_match_is_a_field_error(written) -> None:
    evil = _with_option({"unlisted_choice": {"enabled": True, "validation_regex": "^(a|aa)+$"}})

    (error,) = _errors({"profile": "free", "image--unlisted-choice": written}, evil)

    assert error.field == "image--unlisted-choice"
    assert "takes too long to check. Enter something shorter or simpler." in error.text


def test_all_written_in_values_together_get_the_time_of_one(monkeypatch) -> None:
    write_in = {"unlisted_choice": {"enabled": True, "validation_regex": "^(a|aa)+$"}}
    names = [f"option-{number}" for number in range(5)]
    listed = {"slug": "free", "display_name": "Free", "default": True}
    [profile] = read([{**listed, "profile_options": dict.fromkeys(names, write_in)}])
    matched: list[str] = []

    def begins(_: str, text: str) -> bool:
        matched.append(text)
        raise regexes.TooLongError

    monkeypatch.setattr(regexes, "begins", begins)
    evil = {f"{name}--unlisted-choice": "a" * 60 for name in names}

    errors = choose({"profile": "free", **evil}, (profile,))

    assert isinstance(errors, tuple)
    assert [error.field for error in errors] == list(evil)
    assert len(matched) == 1
    assert keep({"profile": "free", **evil}, (profile,)) == {"profile": "free"}
    assert len(matched) == 2


def test_another_choice_of_an_option_replaces_the_written_in_value() -> None:
    image = GPU_PROFILE.options[1]
    written = Chosen(GPU_PROFILE, {"profile": "gpu", "image--unlisted-choice": "quay.io/a"})

    assert written.instead(image, image.choices[0]).options == {"profile": "gpu", "image": "base"}


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, ["One"]),
        ({"gpus": "two"}, ["Two"]),
        ({"gpus": "", "gpus--unlisted-choice": "3"}, []),
        ({"gpus": "two", "gpus--unlisted-choice": "3"}, []),
    ],
)
def test_an_option_has_its_default_unless_something_is_chosen_or_written_in(options, names) -> None:
    gpus = GPU_PROFILE.options[0]
    chosen = Chosen(GPU_PROFILE, {"profile": "gpu", **options})

    assert [it.name for it in gpus.choices if chosen.has(gpus, it)] == names


@given(st.dictionaries(KEYS, VALUES) | JSON)
def test_any_options_are_a_choice_or_errors_and_kept_options_are_a_choice(raw) -> None:
    read = choose(raw, PROFILES)

    assert isinstance(read, Chosen) or (read and all(it.text for it in read))
    kept = keep(raw, PROFILES)
    assert isinstance(choose(kept, PROFILES), Chosen)
    if isinstance(read, Chosen):
        assert kept == (raw or {})


def test_wrong_options_are_dropped_and_the_rest_is_kept() -> None:
    sent = {"profile": "gpu", "gpus": "two", "image--unlisted-choice": "docker.io/a"}

    assert keep(sent, PROFILES) == {"profile": "gpu", "gpus": "two"}
    assert keep({"profile": "gone", "gpus": "two"}, PROFILES) == {}


def test_a_wrong_text_stays_to_be_corrected_in_the_place_of_another_choice() -> None:
    sent = {"profile": "gpu", "gpus": "nine", "image--unlisted-choice": "docker.io/a"}
    right = {it: sent[it] for it in ("profile", "image--unlisted-choice")}

    assert keep(sent, PROFILES, to_correct=True) == right
    assert keep({**right, "gpus--unlisted-choice": [1]}, PROFILES, to_correct=True) == right
    assert keep({**sent, "profile": "gone"}, PROFILES, to_correct=True) == {}


def test_an_empty_field_drops_no_other_choice() -> None:
    sizes = {"choices": {"small": {"display_name": "S"}, "large": {"display_name": "L"}}}
    options = {"image": {"unlisted_choice": {"enabled": True}}, "size": sizes}
    [profile] = read(
        [{"display_name": "B", "slug": "b", "default": True, "profile_options": options}]
    )

    assert keep({"profile": "b", "size": "large"}, (profile,)) == {"profile": "b", "size": "large"}
    assert keep({"profile": "b", "size": "huge"}, (profile,)) == {"profile": "b"}


def test_a_profile_with_defaults_is_its_slug() -> None:
    assert of_profile(GPU_PROFILE).options == {"profile": "gpu"}


def _errors(options: Any, profiles: Any = PROFILES) -> tuple[FieldError, ...]:
    read = choose(options, profiles)
    assert not isinstance(read, Chosen)
    return read


def _with_option(option: dict[str, Any]) -> Any:
    profile = {"display_name": "Free", "slug": "free", "default": True}
    return read([{**profile, "profile_options": {"image": {"display_name": "Image", **option}}}])


@pytest.fixture
def writing_in(hub_with) -> Callable[[str], Any]:
    """Make the spawner of a user who has written in the name of an image."""
    image = {
        "display_name": "Image",
        "choices": {"base": {"display_name": "Base"}},
        "unlisted_choice": {
            "enabled": True,
            "validation_regex": "^(a|aa)+$",
            "kubespawner_override": {"image": "{value}"},
        },
    }
    listed = [{**CPU, "slug": "cpu", "profile_options": {"image": image}}]

    def spawner(written: str) -> Any:
        spawner = hub_with().spawner(profile_list=listed)
        spawner.user_options = {"profile": "cpu", "image--unlisted-choice": written}
        return spawner

    return spawner


async def test_a_written_in_value_is_loaded_if_the_administrator_allows_it(writing_in) -> None:
    spawner = writing_in("aaa")

    await spawner.load_user_options()

    assert spawner.image == "aaa"
    with pytest.raises(ValueError, match="'b' isn't allowed"):
        await writing_in("b").load_user_options()


async def test_a_number_that_is_written_in_is_loaded_as_its_text(hub_with) -> None:
    gigabytes = {
        "display_name": "GB",
        "unlisted_choice": {"enabled": True, "kubespawner_override": {"mem_limit": "{value}G"}},
    }
    listed = [{**CPU, "slug": "cpu", "profile_options": {"memory": gigabytes}}]
    spawner = hub_with().spawner(profile_list=listed)
    spawner.user_options = {"profile": "cpu", "memory--unlisted-choice": 8}

    await spawner.load_user_options()

    assert spawner.mem_limit == 8 * 2**30


@pytest.mark.each_python
async def test_kubespawner_matches_written_in_values_in_bounded_time(writing_in) -> None:
    """`re` would block the hub on this value; it wouldn't even handle a signal."""
    evil = writing_in("a" * 60 + "!")

    with pytest.raises(ValueError, match="takes too long to check"):
        await evil.load_user_options()
    assert "Base" in await evil.get_options_form()


async def test_a_profile_cannot_set_offers(hub_with) -> None:
    cheating = {**CPU, "kubespawner_override": {"accelerators": {}, "image": "mine:1"}}
    spawner = hub_with().spawner(profile_list=[cheating])

    with pytest.raises(Refusal) as raised:
        await spawner.load_user_options()
    assert raised.value.details == "GPUSpawner.accelerators can only be set for the whole hub"
    assert spawner.image != "mine:1"
