import pytest

from gpuspawner.kube.objects import convert
from gpuspawner.scheduling import Outcome, Rules, Why, evaluate
from gpuspawner.scheduling.failures import DriverMissing, TooManyVolumes
from tests.unit.makers.objects import cluster, judge, node, pod
from tests.unit.makers.storage import WAIT, claim, uses, volume


def csi(handle, driver="csi"):
    return {"csi": {"driver": driver, "volumeHandle": handle}}


def csi_node(limit, driver="csi"):
    drivers = [{"name": driver, "nodeID": "a", "allocatable": {"count": limit}}]
    return {"metadata": {"name": "a"}, "spec": {"drivers": drivers}}


def attachment(name, place="a"):
    spec = {"attacher": "csi", "nodeName": place, "source": {"persistentVolumeName": name}}
    return {"metadata": {"name": f"va-{name}"}, "spec": spec}


def objects(limit, there=(), attached=()):
    """Return the claim of a pod, and a node whose pods use other claims."""
    names = [*there, "home", *attached]
    return {
        "persistentVolumeClaims": [claim(name, volume=f"v-{name}") for name in names],
        "persistentVolumes": [volume(f"v-{name}", claim=name, **csi(name)) for name in names],
        "pods": [pod(f"old-{name}", node="a", **uses(name)) for name in there],
        "csiNodes": [csi_node(limit)],
        "volumeAttachments": [attachment(f"v-{name}") for name in attached],
        "storageClasses": [WAIT],
    }


def verdict(limit, there=(), attached=(), **more):
    """Explain a pod with a claim on a node whose pods use other claims."""
    return judge(pod(**uses("home")), node(), **{**objects(limit, there, attached), **more})


def test_a_pod_above_the_volume_limit_of_a_node_waits_for_others():
    full = verdict(1, there=["x"])
    assert full.failures["a"] == (TooManyVolumes("csi", 1),)
    assert full.outcome is Outcome.BUSY


def test_a_volume_counts_until_it_is_detached():
    state = cluster(node(), **objects(1, attached=["x"]))
    assert evaluate(state, pod(**uses("home"))).feasible == ()

    state.remove("VolumeAttachment", "", "va-v-x")

    assert evaluate(state, pod(**uses("home"))).feasible == ("a",)


def test_the_limits_are_those_of_the_newest_csi_node():
    state = cluster(node(), **objects(1, there=["x"]))
    asks = pod(**uses("home"))
    assert evaluate(state, asks).feasible == ()

    state.put(convert("CSINode", csi_node(2)))
    assert evaluate(state, asks).feasible == ("a",)

    state.put(convert("CSINode", csi_node(1)))
    state.remove("CSINode", "", "a")
    assert evaluate(state, asks).feasible == ("a",)


def test_a_waiting_claim_counts_for_the_driver_of_its_class():
    given = {"persistentVolumeClaims": [claim()], "storageClasses": [WAIT]}
    full = judge(pod(**uses("home")), node(), csiNodes=[csi_node(0)], **given)
    assert full.failures["a"] == (TooManyVolumes("csi", 0),)
    assert full.outcome is Outcome.IMPOSSIBLE


def test_in_tree_disks_count_for_their_csi_driver():
    given = {"csiNodes": [csi_node(1, "ebs.csi.aws.com")]}
    disks = [{"name": d, "awsElasticBlockStore": {"volumeID": d}} for d in "xy"]
    old = pod("old", node="a", volumes=disks[:1])
    assert not judge(pod(volumes=disks[1:]), node(), pods=[old], **given).feasible


def test_an_in_tree_disk_beyond_the_limit_of_an_empty_node_never_fits():
    disk = pod(volumes=[{"name": "d", "awsElasticBlockStore": {"volumeID": "d"}}])
    full = judge(disk, node(), csiNodes=[csi_node(0, "ebs.csi.aws.com")])
    assert full.outcome is Outcome.IMPOSSIBLE


@pytest.mark.parametrize("judged", [verdict, lambda *_, **more: without_driver(**more)])
def test_without_csi_nodes_a_fit_is_unknown(judged):
    made = judged(1, csiNodes=None)
    assert made.outcome is Outcome.UNKNOWN
    assert {(doubt.why, doubt.detail) for doubt in made.unknown} == {(Why.NOT_KNOWN, "CSINode")}


def test_without_attachments_a_fit_is_unknown_only_if_there_is_a_limit():
    assert verdict(5, volumeAttachments=None).outcome is Outcome.UNKNOWN
    free = verdict(5, volumeAttachments=None, csiNodes=[csi_node(None)])
    assert free.outcome is Outcome.FITS


@pytest.mark.parametrize(
    "kind", ["persistentVolumeClaims", "persistentVolumes", "storageClasses", "volumeAttachments"]
)
def test_if_a_node_has_a_limit_all_kinds_that_count_volumes_must_be_known(kind):
    inline = pod(volumes=[{"name": "d", "awsElasticBlockStore": {"volumeID": "vol-1"}}])
    limited = [csi_node(1, "ebs.csi.aws.com")]
    assert judge(inline, node(), csiNodes=limited).outcome is Outcome.FITS
    doubtful = judge(inline, node(), csiNodes=limited, **{kind: None})
    assert doubtful.outcome is Outcome.UNKNOWN
    assert judge(inline, node(), **{kind: None}).outcome is Outcome.FITS


def test_an_undecodable_csi_node_matters_to_disks_without_a_claim():
    inline = pod(volumes=[{"name": "d", "awsElasticBlockStore": {"volumeID": "vol-1"}}])
    undecodable = {**csi_node(1), "spec": 5}
    assert judge(inline, node(), csiNodes=[undecodable]).outcome is Outcome.UNKNOWN
    assert judge(pod(), node(), csiNodes=[undecodable]).outcome is Outcome.FITS


WANTS_NO_POD = {"metadata": {"name": "csi"}, "spec": {"preventPodSchedulingIfMissing": True}}
STRICT = Rules.of_version("v1.37.2")


def without_driver(rules=STRICT, **more):
    """Explain a pod with a CSI volume on a node where no driver is installed."""
    bare = {"metadata": {"name": "a"}, "spec": {"drivers": []}}
    return verdict(None, **{"csiNodes": [bare], "csiDrivers": [WANTS_NO_POD], **more}, rules=rules)


def test_a_driver_can_keep_its_pods_from_nodes_without_it():
    assert without_driver().message == (
        "0/1 nodes are available: 1 csi CSI driver is not installed on the node."
    )
    assert without_driver(csiNodes=[]).failures["a"] == (DriverMissing("csi"),)
    assert without_driver(csiNodes=[csi_node(None)]).feasible == ("a",)
    quiet = {"metadata": {"name": "csi"}, "spec": {}}
    assert without_driver(csiDrivers=[quiet]).feasible == ("a",)
    assert without_driver(csiDrivers=[]).feasible == ("a",)


def test_a_node_whose_driver_is_missing_is_away():
    missing = without_driver()
    assert missing.outcome is Outcome.BUSY
    assert (missing.busy, missing.away) == ((), ("a",))


def test_a_claim_that_waits_needs_the_driver_of_its_class():
    given = {"persistentVolumeClaims": [claim()], "storageClasses": [WAIT]}
    found = cluster(node(), **given, csiDrivers=[WANTS_NO_POD], rules=STRICT)
    assert evaluate(found, pod(**uses("home"))).failures["a"] == (DriverMissing("csi"),)


def test_before_1_37_a_node_with_the_driver_is_certain():
    found = objects(None) | {"csiNodes": [csi_node(None)], "csiDrivers": [WANTS_NO_POD]}
    judged = judge(pod(**uses("home")), node("a"), node("b"), **found)
    assert judged.outcome is Outcome.FITS
    assert judged.feasible == ("a",)


EBS = "ebs.csi.aws.com"
EBS_WANTS_NO_POD = {"metadata": {"name": EBS}, "spec": {"preventPodSchedulingIfMissing": True}}
DISK = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
IN_TREE_CLASS = {**WAIT, "provisioner": "kubernetes.io/aws-ebs"}


@pytest.mark.parametrize(
    ("asks", "found"),
    [
        (pod(volumes=[{"name": "d", **DISK}]), {}),
        (pod(**uses("home")), {"persistentVolumes": [volume("v", claim="home", **DISK)]}),
        (pod(**uses("home")), {"persistentVolumeClaims": [claim()]}),
    ],
    ids=["inline", "volume", "class"],
)
def test_in_tree_disks_need_their_driver_only_where_a_csi_node_is(asks, found):
    found = {
        "persistentVolumeClaims": [claim(volume="v")],
        "storageClasses": [IN_TREE_CLASS],
        **found,
    }
    found |= {"csiDrivers": [EBS_WANTS_NO_POD], "rules": STRICT}
    there = {"metadata": {"name": "b"}, "spec": {"drivers": []}}
    judged = judge(asks, node("a"), node("b"), **found, csiNodes=[there])
    assert (judged.feasible, judged.failures["b"]) == (("a",), (DriverMissing(EBS),))


def test_a_csi_volume_needs_its_driver_also_beside_an_in_tree_disk_of_that_driver():
    found = {
        "persistentVolumeClaims": [claim(volume="v")],
        "persistentVolumes": [volume("v", claim="home", **csi("vol-2", EBS))],
        "storageClasses": [WAIT],
    }
    both = pod(volumes=[{"name": "d", **DISK}, *uses("home")["volumes"]])
    judged = judge(both, node(), **found, csiDrivers=[EBS_WANTS_NO_POD], rules=STRICT)
    assert judged.failures["a"] == (DriverMissing(EBS),)


def test_before_1_37_a_missing_driver_matters_only_where_there_is_room():
    found = objects(None) | {"csiNodes": [csi_node(None)], "csiDrivers": [WANTS_NO_POD]}
    asks = pod(requests={"gpu": "1"}, priority=0, **uses("home"))
    full = [pod(f"old-{name}", node=name, requests={"gpu": "1"}, priority=0) for name in "ab"]
    low = pod("low", node="b", requests={"gpu": "1"}, priority=-1)
    for pods, gpus, outcome in (
        (full, "1", Outcome.BUSY),
        (full[:1], "0", Outcome.BUSY),
        (full[:1], "1", Outcome.UNKNOWN),
        ([full[0], low], "1", Outcome.UNKNOWN),
    ):
        state = cluster(node("a", gpu="1"), node("b", gpu=gpus), **{**found, "pods": pods})
        assert evaluate(state, asks).outcome is outcome


def test_drivers_that_are_not_known_make_only_a_fit_unknown():
    assert without_driver(csiDrivers=None).outcome is Outcome.UNKNOWN
    assert verdict(None, csiDrivers=None).outcome is Outcome.FITS
    full = {"pods": [pod("old", node="a", requests={"cpu": "8"})]}
    asks = pod(requests={"cpu": "1"}, **uses("home"))
    for unknown in ({"csiDrivers": None}, {"csiDrivers": None, "csiNodes": None}):
        given = objects(None) | full | unknown | {"rules": STRICT}
        assert judge(asks, node(), **given).outcome is Outcome.BUSY
