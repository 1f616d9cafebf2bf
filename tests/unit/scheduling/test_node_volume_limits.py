import pytest

from gpuspawner.scheduling import Outcome, Why
from gpuspawner.scheduling.failures import TooManyVolumes
from tests.unit.scheduling.objects import judge, node, pod
from tests.unit.scheduling.storage import WAIT, claim, uses, volume


def csi(handle, driver="csi"):
    return {"csi": {"driver": driver, "volumeHandle": handle}}


def csi_node(limit, driver="csi"):
    drivers = [{"name": driver, "nodeID": "a", "allocatable": {"count": limit}}]
    return {"metadata": {"name": "a"}, "spec": {"drivers": drivers}}


def attachment(name, place="a"):
    spec = {"attacher": "csi", "nodeName": place, "source": {"persistentVolumeName": name}}
    return {"metadata": {"name": f"va-{name}"}, "spec": spec}


def verdict(limit, there=(), asks=("home",), shared=False, attached=(), **more):
    """Judge a pod with claims against a node on which pods hold others."""
    names = [*there, *asks, *attached]
    given = {
        "persistentVolumeClaims": [claim(name, volume=f"v-{name}") for name in names],
        "persistentVolumes": [
            volume(f"v-{name}", claim=name, **csi("same" if shared else name)) for name in names
        ],
        "pods": [pod(f"old-{name}", node="a", **uses(name)) for name in there],
        "csiNodes": [csi_node(limit)],
        "volumeAttachments": [attachment(f"v-{name}") for name in attached],
        "storageClasses": [WAIT],
        **more,
    }
    return judge(pod(**uses(*asks)), node(), **given)


def test_a_node_takes_no_more_volumes_than_its_limit():
    assert verdict(2, there=["x"]).feasible == ("a",)
    full = verdict(1, there=["x"])
    assert full.failures["a"] == (TooManyVolumes("csi", 1),)
    assert full.outcome is Outcome.BUSY


def test_a_volume_that_is_there_already_counts_once():
    assert verdict(1, there=["x"], shared=True).feasible == ("a",)


def test_volumes_still_attached_count():
    assert verdict(1, attached=["x"]).feasible == ()


def test_a_limit_of_another_driver_does_not_matter():
    assert verdict(1, there=["x"], csiNodes=[csi_node(0, "other")]).feasible == ("a",)


def test_a_claim_that_waits_counts_for_the_driver_of_its_class():
    given = {"persistentVolumeClaims": [claim()], "storageClasses": [WAIT]}
    full = judge(pod(**uses("home")), node(), csiNodes=[csi_node(0)], **given)
    assert full.failures["a"] == (TooManyVolumes("csi", 0),)
    assert full.outcome is Outcome.IMPOSSIBLE


def test_in_tree_disks_count_for_the_driver_they_became():
    given = {"csiNodes": [csi_node(1, "ebs.csi.aws.com")]}
    disks = [{"name": d, "awsElasticBlockStore": {"volumeID": d}} for d in "xy"]
    old = pod("old", node="a", volumes=disks[:1])
    assert not judge(pod(volumes=disks[1:]), node(), pods=[old], **given).feasible


def test_without_csi_nodes_a_yes_is_unknown():
    made = verdict(1, csiNodes=None)
    assert made.outcome is Outcome.UNKNOWN
    assert [(doubt.why, doubt.detail) for doubt in made.unknown] == [(Why.NOT_KNOWN, "CSINode")]


def test_without_attachments_a_yes_is_unknown_only_where_there_is_a_limit():
    assert verdict(5, volumeAttachments=None).outcome is Outcome.UNKNOWN
    free = verdict(5, volumeAttachments=None, csiNodes=[csi_node(None)])
    assert free.outcome is Outcome.FITS


@pytest.mark.parametrize(
    "kind", ["persistentVolumeClaims", "persistentVolumes", "storageClasses", "volumeAttachments"]
)
def test_where_a_node_has_a_limit_all_that_tells_of_its_volumes_must_be_known(kind):
    inline = pod(volumes=[{"name": "d", "awsElasticBlockStore": {"volumeID": "vol-1"}}])
    limited = [csi_node(1, "ebs.csi.aws.com")]
    assert judge(inline, node(), csiNodes=limited).outcome is Outcome.FITS
    doubtful = judge(inline, node(), csiNodes=limited, **{kind: None})
    assert doubtful.outcome is Outcome.UNKNOWN
    assert judge(inline, node(), **{kind: None}).outcome is Outcome.FITS


def test_an_odd_csi_node_matters_to_disks_without_a_claim():
    inline = pod(volumes=[{"name": "d", "awsElasticBlockStore": {"volumeID": "vol-1"}}])
    odd = {**csi_node(1), "spec": 5}
    assert judge(inline, node(), csiNodes=[odd]).outcome is Outcome.UNKNOWN
    assert judge(pod(), node(), csiNodes=[odd]).outcome is Outcome.FITS
