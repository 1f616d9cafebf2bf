"""A home directory of an old KubeSpawner is found, also after a start that was refused."""

from typing import Any

import pytest

from tests.unit.makers.hubs import StillHub

pytestmark = pytest.mark.each_python

OF_6 = {"pod_name": "jupyter-alice"}
OF_7 = {**OF_6, "kubespawner_version": "7.0.0"}


@pytest.mark.parametrize(
    ("state", "traits", "is_looked_for"),
    [
        (OF_6, {}, True),
        (OF_6, {"_pvc_exists": True}, False),
        (OF_6, {"storage_pvc_ensure": False}, False),
        (OF_7, {}, False),
        ({}, {}, False),
    ],
    ids=["it ends before the search", "after it", "there are no homes", "of this version", "new"],
)
def test_a_start_stores_no_version_as_long_as_an_old_home_has_to_be_looked_for(
    state, traits, is_looked_for, monkeypatch
) -> None:
    spawner: Any = StillHub(monkeypatch).spawner()
    spawner.storage_pvc_ensure = True
    spawner.load_state(state)
    spawner.clear_state()
    for name, value in traits.items():
        setattr(spawner, name, value)

    stored = spawner.get_state()

    assert ("kubespawner_version" not in stored) is is_looked_for
    assert stored.get("pvc_name", spawner.pvc_name) == spawner.pvc_name
