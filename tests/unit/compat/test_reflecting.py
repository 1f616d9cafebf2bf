"""KubeSpawner's reflector tells the last version of each pod that is gone, however it learns it."""

from typing import Any

import pytest
from kubespawner.spawner import PodReflector

from gpuspawner.compat.reflecting import telling

pytestmark = pytest.mark.each_python


def pod(name: str, uid: str = "1", **more: object) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": uid}, **more}


class Unconnected(PodReflector):
    """A reflector that asks no API server."""

    def __init__(self) -> None: ...


def reflecting() -> tuple[Any, list[object]]:
    gone: list[object] = []
    return telling(Unconnected, gone.append)(), gone


def test_a_pod_that_the_watch_removes_is_told_as_it_was_last() -> None:
    reflector, gone = reflecting()
    reflector.resources = {"hub/a": pod("a"), "hub/b": pod("b")}
    reflector.resources["hub/a"] = pod("a", status="evicted")

    reflector.resources.pop("hub/a", None)
    reflector.resources.pop("hub/never-seen", None)

    assert gone == [pod("a", status="evicted")]
    assert reflector.pods == {"hub/b": pod("b")}


def test_a_pod_that_a_new_list_lacks_is_told() -> None:
    reflector, gone = reflecting()
    reflector.resources = {"hub/a": pod("a"), "hub/b": pod("b")}

    reflector.resources = {"hub/b": pod("b"), "hub/c": pod("c")}
    assert gone == [pod("a")]
    reflector.resources.pop("hub/c")

    assert gone == [pod("a"), pod("c")]


def test_another_pod_of_the_name_tells_that_the_first_is_gone() -> None:
    reflector, gone = reflecting()
    reflector.resources = {"hub/a": pod("a")}

    reflector.resources["hub/a"] = pod("a", uid="2")
    reflector.resources = {"hub/a": pod("a", uid="3")}

    assert gone == [pod("a"), pod("a", uid="2")]


def test_what_is_no_reflector_of_kubespawner_s_stays_as_it_is() -> None:
    assert telling(dict, print) is dict
