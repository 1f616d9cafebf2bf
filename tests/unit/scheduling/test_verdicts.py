"""Pods that are alike share one evaluation; other pods never do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuspawner.scheduling import verdicts as verdicts_module
from gpuspawner.scheduling.contention import Demand
from gpuspawner.scheduling.pod_claims import SELECTED_NODE
from gpuspawner.scheduling.verdict import Outcome
from gpuspawner.scheduling.verdicts import Subject, Verdicts, is_simple
from tests.unit.makers.storage import STORAGE_KINDS, WAIT, claim, uses, volume
from tests.unit.makers.worlds import (
    GPU,
    HOSTNAME,
    NAMESPACE,
    StillView,
    named_node,
    node,
    pod,
    proposal,
)

pytestmark = pytest.mark.usefixtures("clock")

TERM = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": HOSTNAME}
ANTI_AFFINITY = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}


def subject(name: str, gpus: int = 1, **spec: object) -> Subject:
    made = proposal(name, gpus, **spec).subject
    assert isinstance(made, Subject)
    return made


def labelled(name: str, app: str) -> Subject:
    what = proposal(name)
    made = replace(what, pod={**what.pod, "metadata": {"labels": {"app": app}}}).subject
    assert isinstance(made, Subject)
    return made


@pytest.fixture
def evaluations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collects the names of the evaluated pods."""
    names: list[str] = []
    evaluate = verdicts_module.evaluate

    def counted(state: object, pod: object, **more: object) -> object:
        names.append(pod.metadata.name)  # type: ignore[attr-defined]
        return evaluate(state, pod, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(verdicts_module, "evaluate", counted)
    return names


def test_a_pod_that_lacks_a_node_takes_no_room_and_costs_no_verdict(evaluations) -> None:
    """Thousands may be pending that no node will hold."""
    view = StillView(("Node", node("n", 2)), ("Pod", pod("small", 1, on="n", priority=-1)))
    verdicts = Verdicts(view.state)

    assert verdicts.demand(subject("large", 2, nodeSelector={"zone": "z"}, priority=0)) is None
    assert evaluations == []
    assert verdicts.demand(subject("small", 2, priority=0)) is not None
    assert evaluations == ["small"]


def test_pods_alike_are_evaluated_once_until_the_state_changes(evaluations) -> None:
    view = StillView(("Node", node("n", 2)))
    verdicts = Verdicts(view.state)

    for name in ("a", "b", "c"):
        verdicts.verdict(subject(name))
    assert evaluations == ["a"]

    view.put("Pod", pod("x", on="n"))
    verdicts.verdict(subject("d"))
    assert evaluations == ["a", "d"]


def test_pods_with_different_requests_are_evaluated_separately(evaluations) -> None:
    verdicts = Verdicts(StillView(("Node", node("n", 2))).state)

    assert verdicts.verdict(subject("a", 1)).outcome is Outcome.FITS
    assert verdicts.verdict(subject("b", 4)).outcome is Outcome.IMPOSSIBLE
    assert evaluations == ["a", "b"]


def test_generated_volume_names_make_no_difference(evaluations) -> None:
    verdicts = Verdicts(StillView(("Node", node("n", 2))).state)

    verdicts.verdict(subject("a", volumes=[{"name": "kube-api-access-1", "projected": {}}]))
    verdicts.verdict(subject("b", volumes=[{"name": "kube-api-access-2", "projected": {}}]))

    assert evaluations == ["a"]


def test_names_of_pods_make_no_difference_for_ephemeral_volumes_without_claims(evaluations) -> None:
    """Hundreds of servers may have a scratch disk each, and each change asks about all of them."""
    verdicts = Verdicts(StillView(("Node", node("n", 2))).state)
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}

    for name in ("a", "b"):
        verdicts.verdict(subject(name, volumes=[scratch]))

    assert evaluations == ["a"]


@pytest.mark.parametrize(("mode", "alike"), [("ReadWriteOnce", True), ("ReadWriteOncePod", False)])
def test_servers_with_homes_need_the_same_unless_a_home_is_for_one_pod_at_a_time(
    mode: str, alike: bool
) -> None:
    """Those who need the same wait in one lane, and none of them passes the first."""
    view, needs = StillView(), set()
    for name in ("ann", "bob"):
        home = claim(name, f"v-{name}", "", (mode,), namespace=NAMESPACE)
        view.put("PersistentVolumeClaim", home)
        view.put("PersistentVolume", volume(f"v-{name}", claim=name))
        needs.add(Verdicts(view.state).shape_of_needs(subject(name, **uses(name))))

    assert (len(needs) == 1) is alike


@pytest.mark.parametrize(("mode", "alike"), [("ReadWriteOnce", True), ("ReadWriteOncePod", False)])
@pytest.mark.parametrize("exists", [True, False])
def test_so_do_servers_whose_homes_have_no_volumes_yet(
    mode: str, alike: bool, exists: bool
) -> None:
    view = StillView()
    verdicts, needs = Verdicts(view.state), set()
    for name in ("ann", "bob"):
        home = claim(name, modes=(mode,), namespace=NAMESPACE)
        if exists:
            view.put("PersistentVolumeClaim", home)
        mine = subject(name, **uses(name))
        needs.add(verdicts.shape_of_needs(Subject(mine.pod, () if exists else (home,))))

    assert (len(needs) == 1) is alike


def needs_of_ann(*objects: tuple[str, Any]) -> bytes:
    """What Ann's server needs, of whose home these objects are."""
    verdicts = Verdicts(StillView(*objects).state)
    return verdicts.shape_of_needs(subject("server", **uses("ann")))


def unbound(**fields: Any) -> Any:
    return claim("ann", namespace=NAMESPACE, **fields)


def kept_for_ann(zone: str) -> Any:
    made = volume("kept", zone=zone)
    made["spec"]["claimRef"] = {"namespace": NAMESPACE, "name": "ann"}
    return "PersistentVolume", made


UNBOUND = ("PersistentVolumeClaim", unbound())
LOST = unbound(volume="v")
LOST["status"]["phase"] = "Lost"
BLOCK, SELECTING, ATTRIBUTES = unbound(), unbound(), unbound()
BLOCK["spec"]["volumeMode"] = "Block"
SELECTING["spec"]["selector"] = {"matchLabels": {"kind": "fast"}}
ATTRIBUTES["spec"]["volumeAttributesClassName"] = "fast"
BEING_MADE = unbound(annotations={SELECTED_NODE: "n"})
BEING_DELETED = unbound(deletionTimestamp="2026-01-01T00:00:00Z")
VOLUME_GONE = unbound(volume="gone")


@pytest.mark.parametrize(
    "other",
    [
        unbound(size="20Gi"),
        unbound(modes=("ReadWriteMany",)),
        unbound(class_="now"),
        BLOCK,
        SELECTING,
        ATTRIBUTES,
        BEING_MADE,
        BEING_DELETED,
        VOLUME_GONE,
        LOST,
    ],
)
def test_servers_with_homes_that_other_volumes_suit_need_something_else(other: Any) -> None:
    assert needs_of_ann(UNBOUND) != needs_of_ann(("PersistentVolumeClaim", other))


def test_servers_need_the_same_however_a_home_says_that_it_is_as_others() -> None:
    """The API server writes out what a hub's template leaves out, and sorts the rest."""
    templated, written = unbound(), unbound(size="10240Mi")
    written["spec"]["volumeMode"] = "Filesystem"
    templated["spec"]["selector"] = {"matchLabels": {"b": "1", "a": "2"}}
    written["spec"]["selector"] = {"matchLabels": {"a": "2", "b": "1"}}

    first, second = (needs_of_ann(("PersistentVolumeClaim", it)) for it in (templated, written))
    assert first == second


def test_a_volume_that_is_kept_for_a_home_decides_where_its_server_fits() -> None:
    needs = needs_of_ann(UNBOUND), *(needs_of_ann(UNBOUND, kept_for_ann(it)) for it in "ab")

    assert len(set(needs)) == 3


def test_a_volume_that_is_kept_for_a_home_it_doesnt_suit_decides_nothing() -> None:
    kind, made = kept_for_ann("a")
    made["spec"]["capacity"] = {"storage": "1Gi"}

    assert needs_of_ann(UNBOUND, (kind, made)) == needs_of_ann(UNBOUND)


@pytest.mark.parametrize(
    "source",
    [
        {"csi": {"driver": "other", "volumeHandle": "v-1"}},
        {"gcePersistentDisk": {"pdName": "v-1"}},
    ],
)
def test_volumes_of_other_drivers_are_on_other_nodes(source: Any) -> None:
    """Nodes have drivers, and limits of each, of their own."""
    home = ("PersistentVolumeClaim", unbound(volume="v"))
    usual: list[Any] = [
        volume("v", csi={"driver": "csi", "volumeHandle": f"v-{it}"}) for it in (1, 2)
    ]
    first, second, other = (
        needs_of_ann(home, ("PersistentVolume", it)) for it in (*usual, volume("v", **source))
    )

    assert first == second != other


def test_servers_that_wait_for_devices_of_a_claim_need_something_else() -> None:
    """The nodes that have them, which nobody can tell."""
    shape = Verdicts(StillView().state).shape_of_needs
    with_claim = subject("ann", resourceClaims=[{"name": "gpus", "resourceClaimName": "ann"}])

    assert shape(with_claim) != shape(subject("ann"))


def test_homes_for_one_pod_at_a_time_differ_by_namespace_too() -> None:
    view, needs = StillView(), set()
    for namespace in ("ns-ann", "ns-bob"):
        modes = ("ReadWriteOncePod",)
        view.put("PersistentVolumeClaim", claim("home", modes=modes, namespace=namespace))
        mine = replace(proposal("server", **uses("home")), namespace=namespace).subject
        assert isinstance(mine, Subject)
        needs.add(Verdicts(view.state).shape_of_needs(mine))

    assert len(needs) == 2


def test_servers_that_name_different_nodes_need_different_ones() -> None:
    shape = Verdicts(StillView().state).shape_of_needs

    assert shape(subject("ann", nodeName="n")) != shape(subject("bob", nodeName="m"))


def test_new_nodes_are_the_same_to_servers_unless_these_keep_each_other_away() -> None:
    verdicts = Verdicts(StillView(("Node", node("n", 2))).state)
    key = verdicts.shape_on_new_nodes

    assert key(subject("ann")) == key(subject("bob"))
    assert key(subject("ann")) != key(subject("bob", 2))
    # Such terms are about the pod's own namespace and name.
    ann, bob = (subject(name, affinity=ANTI_AFFINITY) for name in ("ann", "bob"))
    assert key(ann) != key(bob)
    assert verdicts.shape_of_needs(ann) == verdicts.shape_of_needs(bob)


def test_labels_make_no_difference_to_pods_that_keep_others_of_their_namespace_away(
    evaluations,
) -> None:
    """Nearly each cluster has some, as databases have them; a form or a start isn't about these."""
    loner: Any = pod("loner", 0, on="n", affinity=ANTI_AFFINITY)
    loner["metadata"]["namespace"] = "databases"
    verdicts = Verdicts(StillView(named_node("n", 2), ("Pod", loner)).state)

    for name in ("a", "b"):
        assert verdicts.verdict(labelled(name, name)).outcome is Outcome.FITS
    assert evaluations == ["a"]


def test_labels_make_a_difference_if_a_running_pod_keeps_others_away() -> None:
    loner = pod("loner", 0, on="n", affinity=ANTI_AFFINITY)
    verdicts = Verdicts(StillView(named_node("n", 2), ("Pod", loner)).state)

    assert verdicts.verdict(labelled("b", "b")).outcome is Outcome.FITS
    assert verdicts.verdict(labelled("a", "a")).outcome is Outcome.BUSY


@pytest.mark.parametrize("first", ["mine", "other"])
def test_only_the_pod_itself_has_the_room_that_its_node_keeps_for_it(first) -> None:
    nominated = {**pod("mine"), "status": {"nominatedNodeName": "n"}}
    view = StillView(("Node", node("n", 1)), ("Pod", nominated))
    verdicts = Verdicts(view.state)

    verdicts.verdict(subject(first))
    assert verdicts.verdict(subject("mine")).outcome is Outcome.FITS
    assert verdicts.verdict(subject("other")).outcome is Outcome.BUSY


@pytest.mark.parametrize("first", ["mine", "other"])
def test_only_the_pod_itself_waits_for_the_claim_that_its_predecessor_left(first) -> None:
    left = claim("mine-scratch", namespace=NAMESPACE, ownerReferences=[{"kind": "Pod"}])
    objects = ("Node", node("n", 1)), ("StorageClass", WAIT), ("PersistentVolumeClaim", left)
    view = StillView(*objects)
    for kind in STORAGE_KINDS:
        view.state.mark_known(kind)
    verdicts = Verdicts(view.state)
    template = {"volumeClaimTemplate": {"spec": left["spec"]}}
    scratch = [{"name": "scratch", "ephemeral": template}]

    verdicts.verdict(subject(first, volumes=scratch))
    assert verdicts.verdict(subject("mine", volumes=scratch)).outcome is Outcome.UNKNOWN
    assert verdicts.verdict(subject("other", volumes=scratch)).outcome is Outcome.FITS


def test_equal_demands_of_different_pods_are_one_object() -> None:
    verdicts = Verdicts(StillView(("Node", node("n", 2))).state)

    one = verdicts.demand(subject("a", volumes=[{"name": "x", "ephemeral": None}]))
    two = verdicts.demand(subject("b", tolerations=[{"key": "k", "operator": "Exists"}]))

    assert one is two
    assert one == Demand({"pods": 1, GPU: 1, "memory": 2**30}, frozenset({"n"}), priority=0)


def test_a_pod_that_fits_nowhere_has_no_demand() -> None:
    verdicts = Verdicts(StillView(("Node", node("n", 2))).state)

    assert verdicts.demand(subject("a", 4)) is None


def test_a_preempting_pod_takes_what_it_requests_of_a_node_where_others_make_way() -> None:
    nodes = [("Node", node(name, 1)) for name in "nmk"]
    pods = [pod(f"on-{name}", on=name, priority=-(name == "n")) for name in "nm"]
    holders = [("Pod", it) for it in (*pods, pod("on-k", on="k"))]
    verdicts = Verdicts(StillView(*nodes, *holders).state)

    asked = {"pods": 1, GPU: 1, "memory": 2**30}
    assert verdicts.demand(subject("a")) == Demand(asked, frozenset({"n"}), below=0, priority=0)


def test_beside_what_cannot_be_read_a_preempting_pod_takes_more_than_anybody_knows() -> None:
    placeholder = pod("placeholder", on="n", priority=-1)
    unread = pod("unread", 0, on="n", overhead={"cpu": "many"})
    nodes = [("Node", node("n", 1)), ("Node", node("m", 1))]
    others = [("Pod", it) for it in (placeholder, unread, pod("low", on="m", priority=-1))]

    demand = Verdicts(StillView(*nodes, *others).state).demand(subject("a"))

    assert demand is not None
    assert (demand.nodes, demand.simple) == (frozenset({"n", "m"}), False)


def test_a_pod_with_an_unknown_verdict_may_land_anywhere() -> None:
    verdicts = Verdicts(StillView().state)
    unreadable = subject("a", overhead={"cpu": "many"})

    assert verdicts.demand_anywhere(subject("b")).requests == {"pods": 1, GPU: 1, "memory": 2**30}
    assert verdicts.demand_anywhere(unreadable) == Demand({}, None, simple=False)


@pytest.mark.parametrize(
    ("spec", "simple"),
    [
        ({}, True),
        ({"affinity": {"nodeAffinity": {}}}, True),
        ({"affinity": ANTI_AFFINITY}, False),
        ({"affinity": {"podAffinity": ANTI_AFFINITY["podAntiAffinity"]}}, False),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]}, False),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]}, True),
        ({"containers": [{"name": "n", "ports": [{"hostPort": 80}]}]}, False),
        ({"containers": [{"name": "n", "ports": [{"containerPort": 8888}]}]}, True),
    ],
)
def test_a_pod_is_simple_if_it_takes_amounts_and_nothing_else(spec, simple) -> None:
    assert is_simple(subject("a", **spec).pod) is simple
