"""Which nodes list an image, and how large it is."""

from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kube.images import canonical
from gpuspawner.kube.nodes import NodeImage
from gpuspawner.scheduling.node_images import NodeImages
from gpuspawner.scheduling.state import ClusterState


def image(*names: str, size: int = 5) -> NodeImage:
    return NodeImage(list(names), size)


def test_an_image_that_somebody_asked_about_is_found_when_a_node_pulls_it() -> None:
    images = NodeImages()
    assert images.nodes("lab:1") == set()
    version = images.version

    images.put("a", [image("lab:1")])

    assert images.nodes("lab:1") == {"a"}
    assert images.version > version


def test_images_that_nobody_asked_about_change_no_version() -> None:
    images = NodeImages()
    images.nodes("lab:1")
    images.put("a", [image("other:1")])
    images.put("a", [])

    assert images.version == 0


def test_the_size_is_the_largest_that_a_node_tells() -> None:
    images = NodeImages()
    images.put("a", [image("lab:1", size=7)])
    images.put("b", [image("lab:1", size=9)])

    assert images.size("lab:1") == 9
    assert images.size("lab:2") is None


def test_a_size_of_nothing_is_unknown() -> None:
    images = NodeImages()
    images.put("a", [image("lab:1", size=0)])

    assert images.size("lab:1") is None


def test_users_who_ask_about_images_of_their_own_make_it_no_larger_for_ever() -> None:
    images = NodeImages()
    images.put("a", [image("lab:0"), image("lab:1")])
    for number in range(5000):
        images.nodes(f"lab:{number}")

    assert len(images._listed) < 1100
    assert images.nodes("lab:0") == images.nodes("lab:1") == {"a"}


NAMES = st.sampled_from(["x", "x:latest", "docker.io/library/x", "y:1", "y:2", "y@sha256:1"])
IMAGES = st.lists(st.builds(NodeImage, st.lists(NAMES, max_size=3) | st.none(), st.integers(1, 9)))
CHANGES = st.lists(st.tuples(st.sampled_from("abc"), IMAGES | st.none() | NAMES), max_size=12)


@given(CHANGES, NAMES, NAMES)
def test_it_knows_what_the_nodes_list_now_whatever_was_before(changes, asked, beside) -> None:
    images, lists = NodeImages(), {}
    for node, change in changes:
        if isinstance(change, str):
            images.nodes(change)
            images.nodes(asked, change)
        else:
            lists[node] = change or []
            images.put(node, change) if change is not None else images.drop(node)

    def having(name: str) -> set[str]:
        return {
            node
            for node, listed in lists.items()
            if any(canonical(name) == canonical(it) for each in listed for it in each.names or ())
        }

    assert images.nodes(asked) == having(asked)
    assert images.nodes(asked, beside) == having(asked) & having(beside)
    assert (images.size(asked) is None) is (not having(asked))


NODE = {"metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "1"}}}


def listing(*names: str) -> dict[str, object]:
    return {**NODE, "status": {**NODE["status"], "images": [{"names": names, "sizeBytes": 4}]}}


def test_a_state_knows_the_images_of_its_nodes_until_they_are_gone() -> None:
    state = ClusterState.from_objects(nodes=[listing("lab:1")])
    assert (state.images.nodes("lab:1"), state.images.size("lab:1")) == ({"a"}, 4)

    state.remove("Node", "", "a")

    assert state.images.nodes("lab:1") == set()


def test_images_never_change_what_verdicts_depend_on() -> None:
    state, other = (ClusterState.from_objects(nodes=[it]) for it in (NODE, listing("lab:1")))
    version = other.version

    other.put(state.nodes["a"].node)

    assert other.version == version
    assert other.nodes["a"].node == state.nodes["a"].node
    assert other.images.nodes("lab:1") == set()
