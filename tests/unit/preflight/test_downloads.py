"""Which images are on the nodes on which a pod fits."""

from collections.abc import Container, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kube.nodes import NodeImage
from gpuspawner.preflight.downloads import Search, containers, is_settled, on_all, on_any
from gpuspawner.scheduling.node_images import NodeImages

pytestmark = pytest.mark.usefixtures("clock")

WANTED = {"both": ("x:1", "y:1"), "x": ("x:1",), "y": ("y:1",), "none": ("z:1",)}


def images(**nodes: list[str]) -> NodeImages:
    known = NodeImages()
    for node, names in nodes.items():
        known.put(node, [NodeImage([name], 1) for name in names])
    return known


def fitting(*nodes: str) -> Search:
    """Search as `fitting_nodes` does, if a pod fits on these nodes."""
    return lambda besides: (node for node in nodes if node not in besides)


def test_an_image_needs_no_download_if_every_node_has_it() -> None:
    known = images(a=["x:1", "y:1"], b=["x:1"])

    assert on_all(known, WANTED, fitting("a")) == {"both", "x", "y"}
    assert on_all(known, WANTED, fitting("a", "b")) == {"x"}
    assert on_all(known, WANTED, fitting("a", "b", "c")) == set()


def test_nodes_are_not_searched_for_images_that_no_node_has() -> None:
    def search(besides: Container[str]) -> Iterator[str]:
        raise AssertionError(besides)

    assert on_all(images(a=["other:1"]), WANTED, search) == set()


def test_nodes_that_have_all_images_are_not_searched() -> None:
    known = images(a=["x:1", "y:1"], b=["x:1", "y:1"])
    searched: list[Container[str]] = []

    def search(besides: Container[str]) -> Iterator[str]:
        searched.append(besides)
        return fitting("a", "b")(besides)

    assert on_all(known, WANTED, search) == {"both", "x", "y"}
    assert searched == [(), {"a", "b"}]


def test_a_pod_that_fits_nowhere_and_images_that_are_unknown_say_nothing() -> None:
    known = images(a=["x:1"])

    assert on_all(known, WANTED, fitting()) == set()
    assert on_all(known, {"unknown": ()}, fitting("a")) == set()


def test_one_node_with_all_images_is_enough_for_an_alternative() -> None:
    known = images(a=["x:1"], b=["y:1"], c=["x:1", "y:1"])

    assert on_any(known, ["x:1", "y:1"], ["a", "b", "c"])
    assert not on_any(known, ["x:1", "y:1"], ["a", "b"])
    assert not on_any(known, ["z:1"], ["a"])


NAMES = st.lists(st.sampled_from(["x:1", "y:1"]), unique=True)


@given(st.dictionaries(st.sampled_from("abc"), NAMES, min_size=1))
def test_what_is_on_all_nodes_is_on_one(nodes: dict[str, list[str]]) -> None:
    known = images(**nodes)
    for key, wanted in WANTED.items():
        everywhere = all(set(wanted) <= set(names) for names in nodes.values())
        anywhere = any(set(wanted) <= set(names) for names in nodes.values())
        assert (key in on_all(known, WANTED, fitting(*nodes))) is everywhere
        assert on_any(known, wanted, nodes) is anywhere


def test_init_containers_need_images_too() -> None:
    pod = {"spec": {"containers": [{"image": "x:1"}], "initContainers": [{"image": "y:1"}]}}

    assert [it["image"] for it in containers(pod)] == ["x:1", "y:1"]
    assert list(containers({"spec": None})) == []


def test_a_container_without_an_image_is_not_settled() -> None:
    assert is_settled({"image": "x:1"})
    assert not is_settled({"image": "x:1", "imagePullPolicy": "Always"})
    assert not is_settled({})
