"""Where home directories are, and the servers that can't use them there."""

from dataclasses import replace
from typing import Any

import pytest

from gpuspawner.doctor.checks.storage import check, check_places, is_without_class
from gpuspawner.gates.what_if import OfferedServer, Tried
from gpuspawner.scheduling import ClusterState
from tests.unit.makers.storage import claim, volume
from tests.unit.makers.worlds import labelled, node, proposal

Plain = dict[str, Any]
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
T4 = OfferedServer("T4", "accelerators", {})
ANY = OfferedServer("a server without a GPU", "accelerators", {})


def machine(name, gpu, zone):
    """Return a node; the servers of a T4 select those with the label that all others lack."""
    return labelled(node(name, 1), {ZONE: zone, HOSTNAME: name, "zone": zone, "gpu": gpu})


NODES = [machine("m", "none", "a"), machine("n", "a100", "b")]


def asked(class_, *homes, nodes=NODES):
    state = ClusterState.from_objects(
        nodes=nodes,
        pods=[],
        persistentVolumeClaims=[it for it, _ in homes],
        persistentVolumes=[it for _, it in homes],
        storageClasses=[class_],
    )
    new = claim(class_=class_["metadata"]["name"])
    tried = [
        Tried(server, replace(proposal("a", gpus), new_claims=(new,)))
        for server, gpus in ((T4, 1), (ANY, 0))
    ]
    return state, tried


def found(class_, *homes, nodes=NODES):
    return list(check_places(*asked(class_, *homes, nodes=nodes)))


def home(name, zone):
    labels = {"component": "singleuser-storage"}
    return claim(name, f"pv-{name}", labels=labels), volume(f"pv-{name}", zone, claim=name)


def of(provisioner):
    return {"metadata": {"name": "disks"}, "provisioner": provisioner}


def test_homes_in_a_zone_without_an_accelerator_are_counted():
    [finding] = found(of("any"), home("ann", "a"), home("bob", "a"), home("eve", "b"))

    assert finding.id == "homes-elsewhere"
    assert finding.text.startswith("2 home directories are in zone a,")
    assert "the nodes for T4 are in zone b," in finding.text


def test_a_home_in_a_zone_without_nodes_can_be_used_by_no_server():
    findings = found(of("any"), home("ann", "gone"))

    for server, finding in zip((T4, ANY), findings, strict=True):
        assert finding.text.startswith("1 home directory is where no node is,")
        assert f"the nodes for {server.name} are on " in finding.text


@pytest.mark.parametrize("provisioner", ["ebs.csi.aws.com", "rancher.io/local-path"])
def test_before_there_is_a_home_its_provisioner_says_where_it_will_stay(provisioner):
    [finding] = found(of(provisioner))

    assert finding.text.startswith("A home directory may be made in zone a and stays there,")
    assert "the nodes for T4 are in zone b," in finding.text


def test_a_home_on_another_machine_of_the_same_zone_is_elsewhere_too():
    nodes = [machine("m", "none", "a"), machine("n", "a100", "a")]

    [finding] = found(of("rancher.io/local-path"), nodes=nodes)

    assert "made on m and" in finding.text
    assert "are on n," in finding.text
    assert found(of("ebs.csi.aws.com"), nodes=nodes) == []


@pytest.mark.parametrize("homes", [(), (home("ann", "b"),)], ids=["none", "beside the GPUs"])
def test_homes_that_every_server_reaches_are_no_trouble(homes):
    assert found(of("nfs.csi.k8s.io"), *homes) == []


@pytest.mark.parametrize(
    ("driver", "zones", "ids"),
    [
        ("ebs.csi.aws.com", [], ["storage-immediate"]),
        ("ebs.csi.aws.com", ["a", "b"], ["storage-immediate"]),
        ("ebs.csi.aws.com", ["a"], []),
        ("any", ["a"], ["storage-immediate"]),
    ],
)
def test_only_a_class_that_may_make_volumes_anywhere_leaves_first_starts_unchecked(
    driver, zones, ids
):
    places = [{"matchLabelExpressions": [{"key": ZONE, "values": zones}]}] if zones else None

    assert [it.id for it in check(*asked({**of(driver), "allowedTopologies": places}))] == ids


@pytest.mark.parametrize(
    ("name", "lacking"),
    [("manual", "There is no StorageClass manual,"), (None, "The cluster has no default Stor")],
)
def test_a_free_volume_that_was_made_by_hand_needs_no_storage_class(name, lacking):
    def told(*volumes):
        state = ClusterState.from_objects(
            nodes=NODES, pods=[], storageClasses=[], persistentVolumes=volumes
        )
        tried = Tried(ANY, replace(proposal("a", 0), new_claims=(claim(class_=name),)))
        assert is_without_class(state, tried) is bool([*check(state, [tried])])
        return [it.text for it in check(state, [tried])]

    assert told(volume(class_=name or "")) == []
    for other in (volume(class_="another"), volume(class_=name or "", claim="taken")):
        [text] = told(other)
        assert text.startswith(lacking)
