"""The rights of rbac.yaml and rbac-minimal.yaml, compared with what the hub reads."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gpuspawner.cluster.kinds import KINDS, KUEUE_KINDS, SCALING_KINDS
from gpuspawner.cluster.unwatched_objects import RUNTIME_CLASSES
from tests.helm.chart import VALUES

BOTH = ("rbac", "rbac-minimal")
# Cluster Autoscaler's status, which has a Role of its own.
(STATUS,) = (kind for kind in SCALING_KINDS if kind.field_selector)

Document = dict[str, Any]


def documents(name: str) -> dict[str, Document]:
    text = (VALUES / f"{name}.yaml").read_text()
    return {document["kind"]: document for document in yaml.safe_load_all(text)}


def granted(rules: list[Document]) -> set[tuple[str, str]]:
    return {
        (group, resource)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def group_of(path: str) -> str:
    """Return the API group of a collection's path; "" for the core group."""
    _, root, group, *_ = path.split("/")
    return group if root == "apis" else ""


def test_the_hub_may_read_what_it_follows_and_nothing_else():
    kinds = (*KINDS, *SCALING_KINDS, *KUEUE_KINDS)
    followed = {(group_of(kind.path), kind.plural) for kind in kinds}
    followed |= {(group_of(RUNTIME_CLASSES), "runtimeclasses")}
    found = documents("rbac")

    assert granted(found["ClusterRole"]["rules"]) == followed - {("", STATUS.plural)}
    assert granted(found["Role"]["rules"]) == {("", STATUS.plural)}


def test_the_minimal_rights_are_those_that_every_verdict_needs():
    rules = documents("rbac-minimal")["ClusterRole"]["rules"]

    assert granted(rules) == {(group_of(kind.path), kind.plural) for kind in KINDS if kind.required}


@pytest.mark.parametrize("name", BOTH)
def test_it_may_only_list_and_watch(name: str):
    for document in documents(name).values():
        for rule in document.get("rules", []):
            assert rule["verbs"] == ["list", "watch"]


def test_one_configmap_can_be_read():
    role = documents("rbac")["Role"]

    assert STATUS.path == f"/api/v1/namespaces/{role['metadata']['namespace']}/configmaps"
    (rule,) = role["rules"]
    assert [f"metadata.name={name}" for name in rule["resourceNames"]] == [STATUS.field_selector]


@pytest.mark.parametrize("name", BOTH)
def test_the_roles_go_to_the_charts_service_account(name: str):
    found = documents(name)

    for kind in {"ClusterRole", "Role"} & set(found):
        binding = found[f"{kind}Binding"]
        assert binding["roleRef"]["kind"] == kind
        assert binding["roleRef"]["name"] == found[kind]["metadata"]["name"]
        assert binding["metadata"].get("namespace") == found[kind]["metadata"].get("namespace")
        assert binding["subjects"] == [
            {"kind": "ServiceAccount", "name": "hub", "namespace": "jhub"}
        ]


@pytest.mark.parametrize("name", BOTH)
def test_the_name_of_each_object_carries_the_hubs_namespace(name: str):
    """What other namespaces share must not be one object for two hubs."""
    names = [document["metadata"]["name"] for document in documents(name).values()]

    assert names == ["gpuspawner-jhub"] * len(names) != []


def test_every_other_object_is_in_the_hubs_namespace():
    (puller,) = yaml.safe_load_all((VALUES / "pull-images.yaml").read_text())

    assert puller["metadata"]["namespace"] == "jhub"
