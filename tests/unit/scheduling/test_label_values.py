"""Labels that differ on nearly each node."""

from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.scheduling.label_values import LabelValues


def test_a_key_is_individual_once_it_has_too_many_values():
    values = LabelValues(most=2)
    assert not values.add({"host": "a", "zone": "x"})
    assert not values.add({"host": "b", "zone": "x"})
    assert values.add({"host": "c", "zone": "y"})
    assert not values.add({"host": "d", "zone": "y"})
    assert values.individual == {"host"}


def test_values_that_are_gone_do_not_count():
    values = LabelValues(most=2)
    for version in range(10):
        assert not values.add({"version": str(version)})
        values.discard({"version": str(version)})


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.sampled_from("12345")), max_size=20))
def test_nothing_is_left_once_all_nodes_are_gone(every):
    values = LabelValues(most=2)
    for labels in every:
        values.add(labels)
    for labels in every:
        values.discard(labels)
    assert (values.individual, +values._nodes, values._values) == (set(), {}, {})
