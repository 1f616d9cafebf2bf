"""Overrides of traits give the values that KubeSpawner gives them."""

from __future__ import annotations

import copy
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from kubespawner import KubeSpawner

from gpuspawner.compat.overrides import overridden


@pytest.mark.each_hub
@pytest.mark.parametrize(
    ("had", "given"),
    [
        ({"pool": "cpu", "zone": "a"}, {"pool": None, "gpu": "t4"}),
        ({"pool": "cpu"}, {"gone": None}),
        ({"dns": {"policy": "a", "search": ["b"]}}, {"dns": {"policy": None}, "new": {"x": None}}),
        ({"dns": ["a"]}, {"dns": ["b"]}),
        ({"shm": {"name": "shm"}}, [{"name": "home"}]),
        ([{"name": "shm"}], {"home": None}),
        ("8G", None),
    ],
)
def test_a_trait_becomes_what_kubespawner_makes_of_it(had: Any, given: Any) -> None:
    spawner = SimpleNamespace(trait=copy.deepcopy(had), log=logging.getLogger("hub"))
    KubeSpawner._apply_overrides(spawner, {"trait": copy.deepcopy(given)})
    before = copy.deepcopy(had)

    assert overridden(had, given) == spawner.trait
    assert had == before
