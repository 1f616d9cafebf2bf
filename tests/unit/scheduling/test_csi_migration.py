import pytest

from gpuspawner.kube.objects import convert
from gpuspawner.scheduling import Outcome, evaluate
from gpuspawner.scheduling.csi_migration import translated, translates
from tests.unit.makers.objects import cluster, judge, node, pod
from tests.unit.makers.storage import WAIT, claim, uses, volume

ZONE = "topology.kubernetes.io/zone"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"
EBS = {"awsElasticBlockStore": {"volumeID": "aws://z-1/vol-1"}}
NODES = [node("old", labels={ZONE: "z-1"}), node("new", labels={EBS_ZONE: "z-1"})]


def affinity(*expressions):
    terms = [
        {"matchExpressions": [{"key": k, "operator": "In", "values": v}]} for k, v in expressions
    ]
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}


def csi_node(name, plugins="kubernetes.io/aws-ebs,kubernetes.io/cinder"):
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": plugins}
    return {"metadata": {"name": name, "annotations": annotations}, "spec": {"drivers": []}}


def objects(csi_nodes, **source):
    disk = volume(claim="home", **{**EBS, **affinity((ZONE, ["z-1"])), **source})
    return {
        "persistentVolumeClaims": [claim(volume="disk")],
        "persistentVolumes": [disk],
        "storageClasses": [WAIT],
        "csiNodes": csi_nodes,
    }


@pytest.mark.parametrize(
    ("csi_nodes", "source"),
    [
        ([csi_node("old", "kubernetes.io/gce-pd")], {}),
        (
            [csi_node("old")],
            {"awsElasticBlockStore": None, "csi": {"driver": "csi", "volumeHandle": "h"}},
        ),
    ],
    ids=["another plugin", "no plugin"],
)
def test_volumes_of_what_a_node_did_not_migrate_keep_their_zone(csi_nodes, source):
    assert judge(pod(**uses("home")), *NODES, **objects(csi_nodes, **source)).feasible == ("old",)


@pytest.mark.parametrize(
    ("migrated", "feasible"),
    [([], ("old",)), (["old", "new"], ("new",)), (["new"], ("new", "old")), (["old"], ())],
)
def test_a_node_that_migrated_the_plugin_needs_the_zone_label_of_the_driver(migrated, feasible):
    given = objects([csi_node(name) for name in migrated])
    assert judge(pod(**uses("home")), *NODES, **given).feasible == feasible


def test_a_change_of_a_csi_node_changes_the_verdict():
    state = cluster(*NODES, **objects([]))
    assert evaluate(state, pod(**uses("home"))).feasible == ("old",)
    state.put(convert("CSINode", csi_node("old")))
    assert evaluate(state, pod(**uses("home"))).feasible == ()
    state.remove("CSINode", "", "old")
    assert evaluate(state, pod(**uses("home"))).feasible == ("old",)


def test_without_csi_nodes_the_verdict_on_an_in_tree_volume_is_unknown():
    assert judge(pod(**uses("home")), *NODES, **objects(None)).outcome is Outcome.UNKNOWN
    lost = [node("lost", labels={ZONE: "z-2"})]
    assert judge(pod(**uses("home")), *lost, **objects(None)).outcome is Outcome.UNKNOWN


def terms(labels=None, source=EBS, **spec):
    """Return the node affinity expressions of a translated volume."""
    made = translated(convert("PersistentVolume", volume(labels=labels, **source, **spec)))
    if made.spec.node_affinity is None:
        return []
    return [
        [(e.key, list(e.values or ())) for e in term.match_expressions or ()]
        for term in made.spec.node_affinity.required.node_selector_terms
    ]


def test_zones_in_the_affinity_take_precedence_over_zone_labels():
    assert terms(labels={ZONE: "z-2"}, **affinity((ZONE, ["z-1"]))) == [[(EBS_ZONE, ["z-1"])]]
    labels = {BETA_ZONE: "z-2__z-1"}
    assert terms(labels=labels) == [[(EBS_ZONE, ["z-1", "z-2"])]]
    others = affinity(("a", ["b"]), ("c", ["d"]))
    zone = (EBS_ZONE, ["z-1", "z-2"])
    assert terms(labels=labels, **others) == [[("a", ["b"]), zone], [("c", ["d"]), zone]]
    assert terms() == []


def test_a_beta_region_label_is_translated_to_the_current_label():
    old = affinity((BETA_ZONE, ["z-1"]), (BETA_REGION, ["r"]))
    assert terms(**old) == [[(EBS_ZONE, ["z-1"])], [("topology.kubernetes.io/region", ["r"])]]
    mixed = affinity((ZONE, ["z-1"]), (BETA_REGION, ["r"]))
    assert terms(**mixed) == [[(EBS_ZONE, ["z-1"])], [(BETA_REGION, ["r"])]]


def test_azure_volumes_keep_their_zone_label():
    source = {"azureDisk": {"diskName": "d", "diskURI": "u"}}
    assert terms(source=source, **affinity((ZONE, ["z-1"]))) == [[(ZONE, ["z-1"])]]


@pytest.mark.parametrize(
    ("source", "zones", "has_csi_form"),
    [
        (EBS, "", True),
        ({"awsElasticBlockStore": {"volumeID": "anything"}}, "", True),
        ({"awsElasticBlockStore": {"volumeID": "aws://z-1/disk"}}, "", False),
        ({"gcePersistentDisk": {"pdName": "d"}}, "anywhere", True),
        ({"gcePersistentDisk": {"pdName": "d"}}, "a-b-1__a-b-2", True),
        ({"gcePersistentDisk": {"pdName": "d"}}, "a-b-1__a-c-1", False),
        ({"azureDisk": {"diskURI": "u", "kind": "Managed"}}, "", True),
        ({"azureDisk": {"diskURI": "u", "kind": "Dedicated"}}, "", False),
        ({"cinder": {"volumeID": "x"}}, "", True),
    ],
)
def test_a_volume_without_a_csi_form_is_unknown(source, zones, has_csi_form):
    made = volume(claim="home", labels={ZONE: zones} if zones else {}, **source)
    assert translates(convert("PersistentVolume", made)) is has_csi_form
    given = {**objects([]), "persistentVolumes": [made]}
    verdict = judge(pod(**uses("home")), node("bare"), **given)
    assert verdict.outcome is (Outcome.FITS if has_csi_form else Outcome.UNKNOWN)
