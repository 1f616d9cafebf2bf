"""A home directory of an old KubeSpawner is found, also after a start that was refused."""

from typing import Any

import pytest

from tests.unit.makers.hubs import StillHub

pytestmark = pytest.mark.each_python

OF_6 = {"pod_name": "jupyter-alice"}
OF_7 = {**OF_6, "kubespawner_version": "7.0.0"}


@pytest.fixture
def spawner(monkeypatch: pytest.MonkeyPatch) -> Any:
    spawner: Any = StillHub(monkeypatch).spawner()
    spawner.storage_pvc_ensure = True
    return spawner


def is_looked_for(spawner: Any) -> bool:
    """Whether KubeSpawner will look for the home directory after the state was stored again."""
    return "kubespawner_version" not in spawner.get_state()


def test_a_start_that_ends_before_the_search_stores_no_version(spawner: Any) -> None:
    spawner.load_state(OF_6)
    spawner.clear_state()

    assert is_looked_for(spawner)


def test_once_the_home_directory_is_known_the_version_is_stored(spawner: Any) -> None:
    spawner.load_state(OF_6)
    spawner._pvc_exists = True

    assert not is_looked_for(spawner)
    assert spawner.get_state()["pvc_name"] == spawner.pvc_name


def test_without_home_directories_there_is_nothing_to_look_for(spawner: Any) -> None:
    spawner.storage_pvc_ensure = False
    spawner.load_state(OF_6)

    assert not is_looked_for(spawner)


@pytest.mark.parametrize("state", [OF_7, {}])
def test_a_state_of_this_version_is_stored_as_kubespawner_does(spawner: Any, state: Any) -> None:
    spawner.load_state(state)

    assert not is_looked_for(spawner)
