"""Which images need no download, wherever a server would start."""

from gpuspawner.availability import State, Surveys
from gpuspawner.kube.objects import convert
from gpuspawner.manifest import PodRules
from gpuspawner.offers import Offers
from gpuspawner.scheduling import ClusterState
from tests.unit.preflight.worlds import having
from tests.unit.surveyed import LIVE, STOCK, T4, look, node, pod, to_come

WITH_IMAGES = Offers.parse(
    accelerators={"t4": T4}, images={"lab": {"image": "lab:1"}, "new": {"image": "new:1"}}
)


def test_an_image_on_every_node_with_room_needs_no_download():
    nodes = [
        having(node("a", 1), "docker.io/library/lab:1"),
        having(node("b", 1), "lab:1", "new:1"),
    ]
    here, _ = look(nodes, offers=WITH_IMAGES)

    assert here.at_hand == {"lab"}


def test_nodes_without_room_need_no_image():
    nodes = [
        having(node("a", 1), "lab:1"),
        node("full", 1),
        node("away", 1, spec={"unschedulable": True}),
    ]
    here, _ = look(nodes, [pod("x", "full", 1)], offers=WITH_IMAGES)

    assert (here.state, here.at_hand) == (State.FREE, {"lab"})


def test_if_one_node_with_room_lists_no_image_nothing_is_said():
    here, _ = look([having(node("a", 1), "lab:1"), node("b", 1)], offers=WITH_IMAGES)

    assert (here.state, here.at_hand) == (State.FREE, set())


def test_without_room_nothing_is_said_of_images():
    here, _ = look([having(node("a", 1), "lab:1")], [pod("x", "a", 1)], offers=WITH_IMAGES)

    assert (here.state, here.at_hand) == (State.BUSY, set())


def test_the_images_of_other_containers_have_to_be_there_too():
    sidecar = {"name": "sidecar", "image": "sidecar:1"}
    spec = {**STOCK["spec"], "initContainers": [sidecar]}
    stock = {**STOCK, "spec": spec}

    without, _ = look([having(node("a", 1), "lab:1")], offers=WITH_IMAGES, stock=stock)
    whole, _ = look([having(node("a", 1), "lab:1", "sidecar:1")], offers=WITH_IMAGES, stock=stock)

    assert (without.at_hand, whole.at_hand) == (set(), {"lab"})


def test_if_another_container_s_image_may_be_outdated_nothing_is_said():
    spec = {**STOCK["spec"], "initContainers": [{"name": "sidecar", "image": "sidecar"}]}
    nodes = [having(node("a", 1), "lab:1", "sidecar")]
    here, _ = look(nodes, offers=WITH_IMAGES, stock={**STOCK, "spec": spec})

    assert here.at_hand == set()


def test_an_image_that_may_be_outdated_may_need_a_download():
    offers = Offers.parse(accelerators={"t4": T4}, images={"lab": {"image": "lab"}})
    here, _ = look([having(node("a", 1), "lab")], offers=offers)

    assert here.at_hand == set()


def test_a_survey_is_made_again_when_a_node_has_pulled_an_image():
    state = ClusterState.from_objects(nodes=[node("a", 1)], pods=[], deviceClasses=[])
    surveys = Surveys(state, to_come(state))

    def at_hand():
        return surveys.survey(LIVE, WITH_IMAGES, STOCK, PodRules())[0].at_hand

    before, version = at_hand(), state.version
    state.put(convert("Node", having(node("a", 1), "lab:1")))

    assert (before, at_hand()) == (set(), {"lab"})
    assert state.version == version
