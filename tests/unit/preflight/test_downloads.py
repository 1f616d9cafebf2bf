"""Which images are on the nodes on which a pod fits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kube.nodes import NodeImage
from gpuspawner.preflight.downloads import containers, is_settled, on_all
from gpuspawner.scheduling.node_images import NodeImages

pytestmark = pytest.mark.usefixtures("clock")

WANTED = {"both": ("x:1", "y:1"), "x": ("x:1",), "y": ("y:1",), "none": ("z:1",)}


def images(**nodes):
    known = NodeImages()
    for node, names in nodes.items():
        known.put(node, [NodeImage([name], 1) for name in names])
    return known


def fitting(*nodes):
    """Search as `fitting_nodes` does, if a pod fits on these nodes."""
    return lambda besides: (node for node in nodes if node not in besides)


def test_nodes_are_not_searched_for_images_that_no_node_has():
    def search(besides):
        raise AssertionError(besides)

    assert on_all(images(a=["other:1"]), WANTED, search) == set()


def test_nodes_that_have_all_images_are_not_searched():
    known = images(a=["x:1", "y:1"], b=["x:1", "y:1"])
    searched = []

    def search(besides):
        searched.append(besides)
        return fitting("a", "b")(besides)

    assert on_all(known, WANTED, search) == {"both", "x", "y"}
    assert searched == [(), {"a", "b"}]


@pytest.mark.parametrize(
    ("wanted", "nodes"),
    [(WANTED, ""), ({"unknown": ()}, "a"), (WANTED, "abc")],
    ids=["the pod fits nowhere", "nobody knows the image", "another node has none"],
)
def test_nothing_is_said_if(wanted, nodes):
    assert on_all(images(a=["x:1"], b=["x:1"]), wanted, fitting(*nodes)) == set()


NAMES = st.lists(st.sampled_from(["x:1", "y:1"]), unique=True)


@given(st.dictionaries(st.sampled_from("abc"), NAMES, min_size=1))
def test_an_image_needs_no_download_if_every_node_has_it(nodes):
    known = images(**nodes)
    for key, wanted in WANTED.items():
        everywhere = all(set(wanted) <= set(names) for names in nodes.values())
        assert (key in on_all(known, WANTED, fitting(*nodes))) is everywhere


def test_init_containers_need_images_too():
    pod = {"spec": {"containers": [{"image": "x:1"}], "initContainers": [{"image": "y:1"}]}}

    assert [it["image"] for it in containers(pod)] == ["x:1", "y:1"]
    assert list(containers({"spec": None})) == []


def test_a_container_without_an_image_is_not_settled():
    assert is_settled({"image": "x:1"})
    assert not is_settled({"image": "x:1", "imagePullPolicy": "Always"})
    assert not is_settled({})
