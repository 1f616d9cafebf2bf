"""Immutable plain data."""

import json

from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.offers.shapes import freeze, thaw
from tests.unit.makers.anything import anything


@given(anything)
def test_thawed_data_equals_the_frozen_data(value):
    assert json.dumps(thaw(freeze(value))) == json.dumps(value)


@given(st.dictionaries(st.text(), anything, min_size=1, max_size=3))
def test_thawed_data_is_a_copy(value):
    frozen = freeze(value)
    before = json.dumps(value)
    thaw(frozen).clear()
    value.clear()

    assert json.dumps(thaw(frozen)) == before
