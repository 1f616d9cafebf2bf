"""Homes that don't exist yet: a first login must not be refused for a missing claim."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuspawner.preflight.decision import Decision, Refuse, Start, UnknownRules
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.preflight.proposal import Proposal
from tests.unit.preflight.worlds import NAMESPACE, StillView, node, proposal

Plain = dict[str, object]

HOME = {"name": "home", "persistentVolumeClaim": {"claimName": "claim-a"}}
STORAGE_KINDS = (
    "PersistentVolumeClaim",
    "PersistentVolume",
    "StorageClass",
    "CSINode",
    "CSIDriver",
    "CSIStorageCapacity",
    "VolumeAttachment",
)


def storage_class(name: str, mode: str = "WaitForFirstConsumer", default: str = "true") -> Plain:
    annotations = {"storageclass.kubernetes.io/is-default-class": default}
    return {
        "metadata": {"name": name, "annotations": annotations},
        "provisioner": "disks.example",
        "volumeBindingMode": mode,
    }


def claim(class_name: str | None = None, **metadata: object) -> Plain:
    spec: Plain = {"accessModes": ["ReadWriteOnce"]}
    if class_name is not None:
        spec["storageClassName"] = class_name
    return {"metadata": {"name": "claim-a", "namespace": NAMESPACE, **metadata}, "spec": spec}


def decide(what: Proposal, *objects: tuple[str, Plain]) -> Decision:
    view = StillView(("Node", node("n", 1)), *objects)
    for kind in STORAGE_KINDS:
        view.state.mark_known(kind)
    return Preflight(view).check(what)


def first_login(*new_claims: Plain, gpus: int = 1) -> Proposal:
    return replace(proposal("a", gpus, volumes=[HOME]), new_claims=new_claims)


def test_a_home_of_a_class_that_waits_for_its_pod_fits() -> None:
    what = first_login(claim("disks"))

    assert decide(what, ("StorageClass", storage_class("disks"))) == Start(what.grant)


def test_a_home_without_a_class_gets_the_clusters_default() -> None:
    what = first_login(claim())

    assert decide(what, ("StorageClass", storage_class("disks"))) == Start(what.grant)


def test_a_home_that_can_be_created_does_not_replace_missing_gpus() -> None:
    what = first_login(claim("disks"), gpus=2)

    assert isinstance(decide(what, ("StorageClass", storage_class("disks"))), Refuse)


@pytest.mark.parametrize(
    "new_claims",
    [(), (claim("nowhere"),), (claim(""),), (claim(),)],
    ids=["made by a hook", "of a missing class", "of no class", "of no default class"],
)
def test_a_claim_that_does_not_exist_yet_is_unknown_and_never_refused(
    new_claims: tuple[Plain, ...],
) -> None:
    decision = decide(first_login(*new_claims))

    assert isinstance(decision, Start)
    assert isinstance(decision.notes[0], UnknownRules)


def test_a_claim_that_exists_and_is_being_deleted_is_refused() -> None:
    going = claim("disks", deletionTimestamp="2026-01-01T00:00:00Z")

    assert isinstance(decide(first_login(), ("PersistentVolumeClaim", going)), Refuse)


@pytest.mark.parametrize(
    "broken", [{}, {"spec": None}, {"metadata": 3}, {"spec": {}, "metadata": {}}]
)
def test_an_undecodable_claim_is_no_error(broken: Plain) -> None:
    decision = decide(first_login(broken), ("StorageClass", storage_class("a")))

    assert isinstance(decision, Start)
