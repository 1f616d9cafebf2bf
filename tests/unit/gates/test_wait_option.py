"""The wish to wait in line, as programs and forms send it."""

import pytest

from gpuspawner.gates.wait_option import pressed, split, without
from gpuspawner.line.queue_config import QueueRules
from gpuspawner.reservations.place_in_line import Wish
from gpuspawner.start.refusal import Refusal

ON = QueueRules()


@pytest.mark.parametrize(
    ("value", "wish"),
    [
        (True, Wish.ANYWAY),
        (False, Wish.NOT),
        (None, Wish.NOT),
        ("here", Wish.HERE),
        ("anyway", Wish.ANYWAY),
    ],
)
def test_the_wish_is_no_option_of_the_server(value: object, wish: Wish) -> None:
    assert split({"gpus": 1, "wait": value}, ON) == ({"gpus": 1}, wish)


@pytest.mark.parametrize("value", [1, 0, "true", "yes", "", [], {"wait": True}, 1.0])
def test_another_value_is_refused_with_what_is_allowed(value: object) -> None:
    with pytest.raises(Refusal, match=r'isn\'t one of true, false, "anyway" and "here"') as refused:
        split({"wait": value}, ON)

    assert refused.value.status_code == 400
    assert [it.field for it in refused.value.on_form.errors] == ["wait"]


@pytest.mark.parametrize("options", [{"gpus": 1}, {"wait": "?"}, None, [], "wait"])
def test_without_a_line_options_stay_as_they_are(options: object) -> None:
    assert split(options, None) == (options, Wish.NOT)


def test_without_a_wish_options_stay_as_they_are() -> None:
    assert split({"gpus": 1}, ON) == ({"gpus": 1}, Wish.NOT)
    assert split(None, ON) == (None, Wish.NOT)


def test_the_form_s_button_waits_only_while_the_page_is_open_unless_its_box_is_ticked() -> None:
    assert pressed({"gpus": ["1"]}) is Wish.NOT
    assert pressed({"wait": ["1"]}) is Wish.HERE
    assert pressed({"wait": ["1"], "wait_even_if_away": ["1"]}) is Wish.ANYWAY
    assert pressed({"wait_even_if_away": ["1"]}) is Wish.NOT


@pytest.mark.parametrize("value", [[], [""], ["0"], ["false"], ["1", "No"]])
def test_a_query_can_say_no(value: list[object]) -> None:
    assert pressed({"wait": value}) is Wish.NOT


@pytest.mark.parametrize("value", ["1", "here", "maybe", ["1"], None])
def test_the_texts_of_forms_and_queries_arent_read_as_those_of_programs(value: object) -> None:
    for even in ({}, {"wait_even_if_away": "1"}):
        assert without({"gpus": "1", "wait": value, **even}, ON) == {"gpus": "1"}
    assert without({"gpus": "1", "wait_even_if_away": "1"}, ON) == {"gpus": "1"}  # just *Start*
    assert without({"wait": value}, None) == {"wait": value}
    assert without(None, ON) is None
