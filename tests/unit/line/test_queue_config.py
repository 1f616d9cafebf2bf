"""Who may wait in line, as administrators write it."""

import pytest

from gpuspawner.line.queue_config import QueueRules, read_queue
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.shapes import OfferError
from tests.unit.makers.configured import offers

MISTAKES = [
    ("on", ": 'on' is not a mapping"),
    (None, ": null is not a mapping"),
    ({"place": 3}, ": unknown key 'place' (did you mean 'places'?)"),
    ({"accelerators": []}, ".accelerators: is empty; write at least one or leave it out"),
    ({"accelerators": ["T-4"]}, ".accelerators: there is no accelerator 'T-4'"),
    ({"accelerators": ["a10"]}, ".accelerators: there is no accelerator 'a10' (did you mean 'a1"),
    ({"profiles": [1]}, ".profiles[0]: 1 is not text; write it in quotes"),
    ({"weights": ["thesis"]}, ".weights: a list is not a mapping"),
    ({"weights": {"thesis": 0}}, ".weights['thesis']: 0 is not a number of at least 0.01"),
    ({"weights": {"thesis": 101}}, ".weights['thesis']: 101 is not a number of at most 100"),
    ({"weights": {"thesis": float("nan")}}, ".weights['thesis']: nan is not a number"),
    ({"weights": {2: 2}}, ".weights: the key 2 is not text; write it in quotes"),
    ({"places": 0}, ".places: 0 is not a whole number of at least 1"),
    ({"places": 100_001}, ".places: 100001 is not a whole number of at most 100000"),
    ({"places_per_user": 1.5}, ".places_per_user: 1.5 is not a whole number"),
    ({"places_per_user": 0}, ".places_per_user: 0 is not a whole number of at least 1"),
    ({"part_kept_free": -0.1}, ".part_kept_free: -0.1 is not a number of at least 0"),
    ({"part_kept_free": 1.1}, ".part_kept_free: 1.1 is not a number of at most 1"),
    ({"minutes_away": 0.5}, ".minutes_away: 0.5 is not a number of at least 1"),
    ({"minutes_away": 10_081}, ".minutes_away: 10081 is not a number of at most 10080"),
    ({"minutes_away": float("inf")}, ".minutes_away: inf is not a number"),
]


@pytest.mark.parametrize(("given", "error"), MISTAKES)
def test_a_mistake_is_named_with_its_key(given, error):
    with pytest.raises(OfferError) as caught:
        read_queue(given, offers())

    assert str(caught.value).startswith(f"GPUSpawner.queue{error}")


def test_people_may_wait_for_everything_unless_the_trait_says_otherwise():
    on = read_queue(True, offers())

    assert on.allow("t4", "")
    assert on.allow(None, "")
    assert on.allow(None, "large")


def test_a_dictionary_turns_it_on_and_a_key_with_null_counts_as_left_out():
    assert read_queue({}, offers()) == QueueRules()
    written = {"profiles": None, "weights": {"thesis": None}}
    assert read_queue(written, offers()) == QueueRules()


def test_every_key_is_read():
    rules = read_queue(
        {
            "accelerators": ["A100"],
            "profiles": ["large"],
            "weights": {"thesis": 2, "guests": 0.5},
            "places": 50,
            "places_per_user": 3,
            "part_kept_free": 0.5,
            "minutes_away": 30,
            "minutes_idle": 5,
        },
        offers(),
    )

    assert rules == QueueRules(
        accelerators=("a100",),
        profiles=("large",),
        weights={"thesis": 2, "guests": 0.5},
        places=50,
        places_per_user=3,
        part_kept_free=0.5,
        minutes_away=30,
        minutes_idle=5,
    )


def test_people_may_wait_only_for_what_is_listed():
    rules = read_queue({"accelerators": ["a100"], "profiles": ["large"]}, offers())

    assert rules.allow("a100", "")
    assert not rules.allow("t4", "")
    assert not rules.allow(None, "")
    assert rules.allow(None, "large")
    assert not rules.allow("a100", "small")


def test_accelerators_that_are_found_later_by_labels_may_be_listed():
    assert read_queue({"accelerators": ["l4"]}, Offers()).allow("l4", "")
    assert read_queue({"accelerators": ["Tesla_T4"]}, Offers()).allow("tesla-t4", "")


def test_the_weight_of_a_person_is_the_most_of_their_groups():
    rules = read_queue({"weights": {"thesis": 2, "guests": 0.5}}, offers())

    assert rules.weight(["guests", "thesis", "others"]) == 2
    assert rules.weight(["guests", "others"]) == 0.5
    assert rules.weight(["others"]) == 1
    assert rules.weight([]) == 1


def test_the_policies_of_those_who_may_wait_have_to_exist():
    assert read_queue({"policies": ["thesis"]}, offers(), ["thesis"]).policies == ("thesis",)
    assert read_queue({"policies": ["any"]}, offers()).policies == ("any",)  # a function makes them
    with pytest.raises(OfferError, match=r"queue.policies: there is no policy 'thsis'.*'thesis'"):
        read_queue({"policies": ["thsis"]}, offers(), ["thesis"])
    with pytest.raises(OfferError, match=r"there is no policy 'thesis'"):
        read_queue({"policies": ["thesis"]}, offers(), [])
