import pytest

from gpuspawner.scheduling import Outcome, Why
from gpuspawner.scheduling.evaluate import evaluate
from tests.unit.makers.objects import cluster, judge, node, pod
from tests.unit.makers.storage import LOCAL, NOW, WAIT, claim, uses, volume

CLASSES = {"storageClasses": [WAIT, NOW, LOCAL]}
LOST = {**claim(volume="disk"), "status": {"phase": "Lost"}}


def refusal(*claims):
    return judge(pod(**uses("home")), node(), persistentVolumeClaims=claims, **CLASSES)


@pytest.mark.parametrize(
    ("claims", "text"),
    [
        ([], 'persistentvolumeclaim "home" not found'),
        ([claim(deletionTimestamp="2026")], 'persistentvolumeclaim "home" is being deleted'),
        ([LOST], 'persistentvolumeclaim "home" bound to non-existent persistentvolume "disk"'),
        ([claim(volume="disk")], 'persistentvolume "disk" not found'),
        ([claim(class_="now")], "pod has unbound immediate PersistentVolumeClaims"),
        ([claim(class_="gone")], "pod has unbound immediate PersistentVolumeClaims"),
    ],
)
def test_a_claim_that_is_not_ready_excludes_every_node(claims, text):
    verdict = refusal(*claims)
    assert verdict.message == f"0/1 nodes are available: {text}."
    assert verdict.condition_message == f"0/1 nodes are available: {text}. not found"
    assert verdict.rejected.claim == "home"
    assert verdict.reasons == {}


def test_a_claim_that_will_be_provisioned_makes_the_verdict_unknown():
    assert refusal(claim(class_="now")).outcome is Outcome.UNKNOWN
    assert refusal(claim(class_="gone")).outcome is Outcome.IMPOSSIBLE


def test_a_new_claim_counts_by_its_storage_class():
    state = cluster(node(), csiNodes=[], **CLASSES)
    waits = evaluate(state, pod(**uses("home")), new_claims=[claim()])
    assert waits.outcome is Outcome.FITS
    at_once = evaluate(state, pod(**uses("home")), new_claims=[claim(class_="now")])
    assert at_once.outcome is Outcome.UNKNOWN
    assert [unknown.why for unknown in at_once.unknown] == [Why.NEW_VOLUME]
    never = evaluate(state, pod(**uses("home")), new_claims=[claim(class_="gone")])
    assert never.outcome is Outcome.IMPOSSIBLE


EBS = {**NOW, "provisioner": "ebs.csi.aws.com"}
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"


def at_zones(*zones, key=ZONE, request=None, new=None, volumes=(), **class_):
    """Judge a first start whose class makes volumes at once, in these zones; the node is in b."""
    places = [{"key": key, "values": list(zones)}]
    made = {**EBS, "allowedTopologies": [{"matchLabelExpressions": places}], **class_}
    there = {"csiNodes": [], "storageClasses": [made], "persistentVolumes": volumes}
    state = cluster(node(labels={key: "b"}), **there)
    asked = request or pod(**uses("home"))
    return evaluate(state, asked, new_claims=[new or claim(class_="now")])


@pytest.mark.parametrize(
    ("zones", "outcome"),
    [
        (["a"], Outcome.IMPOSSIBLE),
        (["a", "c"], Outcome.IMPOSSIBLE),
        (["b"], Outcome.FITS),
        (["a", "b"], Outcome.UNKNOWN),
    ],
)
def test_a_first_start_counts_by_the_zones_in_which_its_class_makes_volumes_at_once(zones, outcome):
    assert at_zones(*zones).outcome is outcome


def test_a_region_may_have_zones_that_the_node_is_not_in():
    assert at_zones("b", key=REGION).outcome is Outcome.UNKNOWN
    assert at_zones("a", key=REGION).outcome is Outcome.IMPOSSIBLE


def test_a_volume_that_is_made_after_its_pod_is_left_open():
    template = {"spec": claim(class_="now")["spec"]}
    request = pod(volumes=[{"name": "tmp", "ephemeral": {"volumeClaimTemplate": template}}])

    assert at_zones("a", request=request).outcome is Outcome.UNKNOWN
    assert at_zones("b", request=request).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    "driver",
    # That of an in-tree class makes volumes that may have other labels.
    ["filestore.csi.storage.gke.io", "disk.csi.azure.com", "nfs", "kubernetes.io/aws-ebs"],
)
def test_a_volume_that_more_nodes_may_reach_than_its_class_allows_refuses_nobody(driver):
    assert at_zones("a", provisioner=driver).outcome is Outcome.UNKNOWN


def test_a_volume_that_is_there_may_be_taken_instead_of_a_new_one_elsewhere():
    there = [volume(zone="b", class_="now")]
    assert at_zones("a", key="zone", volumes=there).outcome is Outcome.UNKNOWN


def test_a_new_claim_that_names_its_volume_gets_no_other_one_elsewhere():
    named = claim(class_="now")
    named["spec"]["volumeName"] = "disk"
    assert at_zones("a", key="zone", new=named).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("kinds", [["persistentVolumeClaims"], ["persistentVolumes"]])
def test_unknown_claims_make_a_fit_unknown_but_not_a_refusal(kinds):
    unknown = dict.fromkeys(kinds)
    given = {"persistentVolumeClaims": [claim(volume="disk")], "persistentVolumes": [], **unknown}
    assert judge(pod(**uses("home")), node(), **given, **CLASSES).outcome is Outcome.UNKNOWN
    big = pod(requests={"gpu": "1"}, **uses("home"))
    verdict = judge(big, node(), **given, **CLASSES)
    assert verdict.outcome is Outcome.IMPOSSIBLE
    assert verdict.reasons == {"a": ["Insufficient nvidia.com/gpu"]}


def test_a_bound_claim_needs_no_storage_class():
    given = {"persistentVolumeClaims": [claim(volume="disk")], "persistentVolumes": [volume()]}
    verdict = judge(pod(**uses("home")), node(), **given, storageClasses=None)
    assert verdict.outcome is Outcome.FITS


def ephemeral(owner=None):
    """Explain a pod if the claim of its ephemeral volume already exists."""
    there = claim("new-scratch", volume="disk")
    if owner:
        there["metadata"]["ownerReferences"] = [{"kind": "Pod", "uid": owner, "controller": True}]
    template = {"volumeClaimTemplate": {"spec": claim()["spec"]}}
    return judge(
        pod(volumes=[{"name": "scratch", "ephemeral": template}]),
        node(),
        persistentVolumeClaims=[there],
        persistentVolumes=[volume(claim="new-scratch")],
        **CLASSES,
    )


def test_the_pod_must_own_the_claim_of_its_ephemeral_volume():
    assert ephemeral("uid-new").outcome is Outcome.FITS
    text = "0/1 nodes are available: PVC hub/new-scratch was not created for pod hub/new"
    refused = ephemeral()
    assert refused.outcome is Outcome.IMPOSSIBLE
    assert refused.message == f"{text} (pod is not owner)."
    left_by_an_earlier_pod = ephemeral("uid-old")
    assert left_by_an_earlier_pod.outcome is Outcome.UNKNOWN
    assert left_by_an_earlier_pod.message == refused.message


def default(name, mode="WaitForFirstConsumer"):
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    made = {**WAIT, "metadata": {"name": name, "annotations": annotations}}
    return {**made, "volumeBindingMode": mode}


def classless(classes, new=True):
    made = claim(class_=None)
    there = () if new else [made]
    state = cluster(node(), persistentVolumeClaims=there, storageClasses=classes)
    return evaluate(state, pod(**uses("home")), new_claims=[made] if new else ()).outcome


def test_a_new_claim_without_a_class_gets_the_default_one():
    assert classless([WAIT, default("usual")]) is Outcome.FITS
    assert classless([WAIT, default("usual", "Immediate")]) is Outcome.UNKNOWN
    assert classless([default("a"), default("b")]) is Outcome.UNKNOWN
    assert classless([WAIT]) is Outcome.IMPOSSIBLE
    template = {"volumeClaimTemplate": {"spec": claim(class_=None)["spec"]}}
    request = pod(volumes=[{"name": "s", "ephemeral": template}])
    assert judge(request, node(), storageClasses=[default("a")]).outcome is Outcome.FITS


def test_an_existing_claim_without_a_class_gets_the_default_one_later():
    assert classless([default("a")], new=False) is Outcome.UNKNOWN
    assert classless([WAIT], new=False) is Outcome.IMPOSSIBLE


def test_a_claim_with_an_empty_class_never_gets_a_default_one():
    state = cluster(node(), storageClasses=[default("a")])
    verdict = evaluate(state, pod(**uses("home")), new_claims=[claim(class_="")])
    assert verdict.outcome is Outcome.IMPOSSIBLE
