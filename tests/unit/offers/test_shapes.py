"""Immutable plain data."""

import json

import pytest
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


def test_frozen_data_cannot_be_changed():
    frozen = freeze({"list": [1], "mapping": {"a": 1}})

    assert frozen["list"] == (1,)
    with pytest.raises(TypeError):
        frozen["list"] = 2
    with pytest.raises(TypeError):
        frozen["mapping"]["a"] = 2


@pytest.mark.parametrize("odd", [{1: 2}, {"a": {1, 2}}, [b"x"], object()])
def test_only_plain_data_can_be_frozen(odd):
    with pytest.raises(TypeError):
        freeze(odd)
