import pytest

from gpuspawner.scheduling import Outcome
from gpuspawner.scheduling.failures import ClaimInUse, DiskInUse
from tests.unit.makers.objects import judge, node, pod
from tests.unit.makers.storage import WAIT, claim, uses, volume

GCE = {"gcePersistentDisk": {"pdName": "x"}}
GCE_READ = {"gcePersistentDisk": {"pdName": "x", "readOnly": True}}
EBS = {"awsElasticBlockStore": {"volumeID": "x", "readOnly": True}}
ISCSI = {"iscsi": {"iqn": "x", "lun": 1}}
RBD = {"rbd": {"monitors": ["m1", "m2"], "pool": "p", "image": "i"}}


@pytest.mark.parametrize(
    ("one", "other", "conflict"),
    [
        (GCE, GCE, True),
        (GCE, GCE_READ, True),
        (GCE_READ, GCE_READ, False),
        (EBS, EBS, True),
        (ISCSI, {"iscsi": {"iqn": "x", "lun": 2}}, True),
        (RBD, {"rbd": {"monitors": ["m2"], "pool": "p", "image": "i"}}, True),
        (RBD, {"rbd": {"monitors": ["m3"], "pool": "p", "image": "i"}}, False),
        (RBD, {"rbd": {"monitors": ["m1"], "pool": "q", "image": "i"}}, False),
        (GCE, EBS, False),
    ],
)
def test_two_pods_on_a_node_share_a_disk_only_if_both_mount_it_read_only(one, other, conflict):
    old = pod("old", node="a", volumes=[{"name": "d", **other}])
    verdict = judge(pod(volumes=[{"name": "d", **one}]), node("a"), node("b"), pods=[old])
    assert verdict.feasible == (("b",) if conflict else ("a", "b"))
    assert not conflict or verdict.failures["a"] == (DiskInUse(),)


def asked(**old):
    """Judge a pod with a claim for one pod, which one of this name uses on b."""
    given = {
        "persistentVolumeClaims": [claim(volume="disk", modes=("ReadWriteOncePod",))],
        "persistentVolumes": [volume(claim="home")],
        "storageClasses": [WAIT],
        "pods": [pod("old", node="b", **uses("home"), **old)],
    }
    return judge(pod(**uses("home")), node("a"), node("b"), **given)


def test_a_read_write_once_pod_claim_in_use_excludes_every_node():
    verdict = asked()
    assert verdict.failures["a"] == (ClaimInUse(),)
    assert verdict.outcome is Outcome.BUSY


def test_claims_of_the_same_name_in_other_namespaces_do_not_count():
    assert asked(namespace="x").feasible == ("a", "b")
