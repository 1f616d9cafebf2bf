"""The availability of the accelerators of a cluster."""

import pytest

from gpuspawner.cluster.health import Forbidden, Reading, Stale, Unreachable
from gpuspawner.kube.objects import convert
from gpuspawner.offers import manifest
from gpuspawner.offers.manifest import PodRules
from gpuspawner.offers.offers import Offers
from gpuspawner.preflight import availability
from gpuspawner.preflight.availability import Availability, State, Surveys
from gpuspawner.preflight.decision import CanScaleUp, ResourceRoom
from gpuspawner.preflight.learned_hooks import Later, Placements
from gpuspawner.scheduling import ClusterState
from tests.unit.makers.surveyed import (
    LATER,
    LIVE,
    OFFERS,
    STOCK,
    T4,
    look,
    node,
    pod,
    survey,
    to_come,
)
from tests.unit.makers.worlds import having


def gpus(most_free, free, most, total):
    return ResourceRoom("nvidia.com/gpu", 1, most_free, free, most, total)


@pytest.mark.parametrize(
    ("nodes", "pods", "state", "counted"),
    [
        ([node("a", 4), node("b", 2)], [pod("x", "a", 3)], State.FREE, gpus(2, 3, 4, 6)),
        ([node("a", 1)], [pod("x", "a", 1)], State.BUSY, gpus(0, 0, 1, 1)),
        ([{**node("a", 0), "metadata": {"name": "a"}}], [], State.ABSENT, gpus(0, 0, 0, 0)),
    ],
    ids=["some are free", "all are taken", "no node has any"],
)
def test_gpus_are_counted_for_one_node_and_in_total(nodes, pods, state, counted):
    here, plain = look(nodes, pods)

    assert (here.state, here.gpus) == (state, counted)
    assert plain == Availability(None, State.FREE, requests=())


def test_free_gpus_on_a_node_without_free_memory_are_busy():
    offers = Offers.parse(accelerators={"t4": T4}, memory_choices=["12Gi", "8Gi"])
    here, plain = look([node("a", 2)], [pod("x", "a", memory="10Gi")], offers)

    assert (here.state, here.gpus) == (State.BUSY, gpus(2, 2, 2, 2))
    assert (plain.state, plain.short_of) == (State.BUSY, "memory")
    assert here.requests == (("memory", 8 << 30), ("nvidia.com/gpu", 1))


FUSE = "github.com/fuse"


def test_another_device_that_is_used_up_is_named_beside_free_gpus():
    full = node("a", 2)
    full["status"]["allocatable"][FUSE] = "1"
    taken = pod("x", "a")
    taken["spec"]["containers"][0]["resources"]["requests"][FUSE] = "1"
    container = {**STOCK["spec"]["containers"][0], "resources": {"limits": {FUSE: "1"}}}
    here, _ = look([full], [taken], stock={**STOCK, "spec": {"containers": [container]}})

    assert (here.state, here.gpus, here.short_of) == (State.BUSY, gpus(2, 2, 2, 2), FUSE)


@pytest.mark.parametrize(
    ("sizes", "taken"),
    [
        ({"memory_choices": ["12Gi", "8Gi"]}, "6Gi"),
        (
            {"memory_choices": ["12Gi"], "unlisted_memory": {"min": "4Gi", "max": "12Gi"}},
            "10Gi",
        ),
    ],
    ids=["of the choices", "that may be entered"],
)
def test_only_the_smallest_size_must_fit(sizes, taken):
    offers = Offers.parse(accelerators={"t4": T4}, **sizes)
    here, plain = look([node("a", 2)], [pod("x", "a", memory=taken)], offers)

    assert {here.state, plain.state} == {State.FREE}


def test_a_full_pool_that_can_grow_can_scale_up():
    growing = {**T4, "scale_up": {"max_nodes": 2, "minutes": 8}}
    here, _ = look([node("a", 1)], [pod("x", "a", 1)], Offers.parse(accelerators={"t4": growing}))

    assert here.state is State.CAN_SCALE_UP
    assert here.scale_up == CanScaleUp(1, 2, 8, pool="gpu=t4")


NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    "away",
    [
        node("a", 1, spec={"unschedulable": True}),
        node("a", 0, capacity=1),
        node("a", 1, spec={"taints": [NOT_READY]}),
    ],
    ids=["cordoned", "unhealthy", "not ready"],
)
def test_nodes_that_may_come_back_are_away(away):
    here, _ = look([away])

    assert here.state is State.AWAY


def test_the_pod_of_the_smallest_server_is_made_once_for_each_accelerator(monkeypatch):
    """Open forms ask for it after each change of the cluster."""
    made = []

    def apply(*about):
        made.append(about)
        return manifest.apply(*about)

    monkeypatch.setattr(availability, "apply", apply)
    here, plain = look([node("a", 1)])

    assert (here.state, plain.state) == (State.FREE, State.FREE)
    assert len(made) == 2


def test_nobody_knows_of_tainted_nodes_until_admission_was_asked():
    """Hubs with a namespace for each user try no samples, and admission may tolerate the taint."""
    tainted = node("a", 1, spec={"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]})
    state = ClusterState.from_objects(nodes=[tainted], pods=[], deviceClasses=[])
    placements = Placements()

    def seen():
        later = Later(placements)
        return survey(state, to_come(state), LIVE, OFFERS, STOCK, PodRules(), later)[0].state

    before = seen()
    placements.admit(("", "t4"), ())

    assert (before, seen()) == (State.UNKNOWN, State.ABSENT)


CLAIM = {"name": "home", "persistentVolumeClaim": {"claimName": "claim-anna"}}


def stock(**spec):
    """Every server's pod, with more in its spec."""
    return {**STOCK, "spec": {**STOCK["spec"], **spec}}


@pytest.mark.parametrize(
    ("spec", "state"),
    [
        ({"nodeSelector": {"zone": "a"}}, State.ABSENT),
        ({"schedulerName": "their-own"}, State.UNKNOWN),
        ({"volumes": [CLAIM]}, State.FREE),
    ],
    ids=["selectors of the administrator", "another scheduler", "a claim that isn't there yet"],
)
def test_what_every_pod_has_counts(spec, state):
    here, plain = look([node("a", 1)], stock=stock(**spec))

    assert (here.state, plain.state) == (state, state)


def test_a_pod_that_contradicts_an_accelerator_leaves_its_state_unknown():
    here, _ = look([node("a", 1)], stock=stock(nodeSelector={"gpu": "other"}))

    assert here == Availability(OFFERS.accelerators["t4"], State.UNKNOWN)


@pytest.mark.parametrize(
    ("sets_priority", "value", "expected"),
    [(True, 1000, State.UNKNOWN), (True, -1, State.BUSY), (False, 1000, State.BUSY)],
)
def test_nobody_knows_what_is_free_for_whom_code_gives_a_priority(sets_priority, value, expected):
    classes = [{"metadata": {"name": "teachers"}, "value": value}]
    state = ClusterState.from_objects(
        nodes=[node("a", 1)], pods=[pod("x", "a", 1)], deviceClasses=[], priorityClasses=classes
    )
    later = Later(Placements(), has_own_code=True, sets_priority=sets_priority)

    here, _ = survey(state, to_come(state), LIVE, OFFERS, STOCK, PodRules(), later)

    assert here.state is expected


def test_rules_for_servers_without_a_gpu_count():
    state = ClusterState.from_objects(nodes=[node("a", 1)], pods=[], deviceClasses=[])
    rules = PodRules(cpu_avoids=tuple(OFFERS.accelerators.values()))
    *_, plain = survey(state, to_come(state), LIVE, OFFERS, STOCK, rules, LATER)

    assert plain.state is State.ABSENT


@pytest.mark.parametrize(
    ("health", "known", "expected"),
    [
        (Reading(1), STOCK, State.READING),
        (Stale(90, "timed out"), STOCK, State.UNKNOWN),
        (Forbidden(("nodes",), "no"), STOCK, State.UNKNOWN),
        (Unreachable("refused"), STOCK, State.UNKNOWN),
        (LIVE, None, State.UNKNOWN),
    ],
)
def test_without_a_live_view_or_a_known_pod_there_are_no_gpu_counts(health, known, expected):
    state = ClusterState.from_objects(nodes=[node("a", 1)], pods=[], deviceClasses=[])

    assert survey(state, to_come(state), health, OFFERS, known, PodRules(), LATER) == (
        Availability(OFFERS.accelerators["t4"], expected),
        Availability(None, expected),
    )


def test_a_survey_is_kept_only_until_the_cluster_changes():
    state = ClusterState.from_objects(nodes=[node("a", 1)], pods=[], deviceClasses=[])
    surveys = Surveys(state, to_come(state), Placements())

    def seen(health=LIVE, of=STOCK):
        return surveys.survey(health, OFFERS, of, PodRules(), LATER)

    first = seen()
    assert seen() is first
    assert seen(Stale(60, "x"))[0].state is State.UNKNOWN
    assert seen(of=stock(nodeSelector={"no": "node"}))[0].state is State.ABSENT

    state.remove("Node", "", "a")
    assert seen()[0].state is State.ABSENT


WITH_IMAGES = Offers.parse(
    accelerators={"t4": T4}, images={"lab": {"image": "lab:1"}, "new": {"image": "new:1"}}
)


LAB = having(node("a", 1), "docker.io/library/lab:1")


@pytest.mark.parametrize(
    ("nodes", "pods", "state", "at_hand"),
    [
        ([LAB, having(node("b", 1), "lab:1", "new:1")], [], State.FREE, {"lab"}),
        (
            [LAB, node("full", 1), node("away", 1, spec={"unschedulable": True})],
            [pod("x", "full", 1)],
            State.FREE,
            {"lab"},
        ),
        ([LAB, node("b", 1)], [], State.FREE, set()),
        ([LAB], [pod("x", "a", 1)], State.BUSY, set()),
    ],
    ids=["on each node", "on each node with room", "not on one with room", "no room"],
)
def test_an_image_on_every_node_with_room_needs_no_download(nodes, pods, state, at_hand):
    here, _ = look(nodes, pods, offers=WITH_IMAGES)

    assert (here.state, here.at_hand) == (state, at_hand)


@pytest.mark.parametrize(
    ("sidecar", "there", "at_hand"),
    [
        ("sidecar:1", ["lab:1"], set()),
        ("sidecar:1", ["lab:1", "sidecar:1"], {"lab"}),
        ("sidecar", ["lab:1", "sidecar"], set()),
    ],
    ids=["away", "there", "perhaps outdated"],
)
def test_the_images_of_other_containers_have_to_be_there_too(sidecar, there, at_hand):
    with_sidecar = stock(initContainers=[{"name": "sidecar", "image": sidecar}])

    here, _ = look([having(node("a", 1), *there)], offers=WITH_IMAGES, stock=with_sidecar)

    assert here.at_hand == at_hand


def test_an_image_that_may_be_outdated_may_need_a_download():
    offers = Offers.parse(accelerators={"t4": T4}, images={"lab": {"image": "lab"}})
    here, _ = look([having(node("a", 1), "lab")], offers=offers)

    assert here.at_hand == set()


def test_a_survey_is_made_again_when_a_node_has_pulled_an_image():
    state = ClusterState.from_objects(nodes=[node("a", 1)], pods=[], deviceClasses=[])
    surveys = Surveys(state, to_come(state), Placements())

    def at_hand():
        return surveys.survey(LIVE, WITH_IMAGES, STOCK, PodRules(), LATER)[0].at_hand

    before, version = at_hand(), state.version
    state.put(convert("Node", having(node("a", 1), "lab:1")))

    assert (before, at_hand()) == (set(), {"lab"})
    assert state.version == version
