"""The rights of rbac.yaml, compared with what the live view reads."""

from __future__ import annotations

import yaml

from gpuspawner.cluster.kinds import KINDS
from tests.helm.chart import VALUES


def documents() -> dict[str, dict]:
    text = (VALUES / "rbac.yaml").read_text()
    return {document["kind"]: document for document in yaml.safe_load_all(text)}


def test_the_hub_may_read_what_the_view_follows_and_nothing_else():
    given = [
        (group, resource)
        for rule in documents()["ClusterRole"]["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    ]

    assert sorted(given) == sorted((group_of(kind.path), kind.plural) for kind in KINDS)


def group_of(path: str) -> str:
    """Return the API group of a collection's path; "" for the core group."""
    _, root, group, *_ = path.split("/")
    return group if root == "apis" else ""


def test_it_may_only_list_and_watch():
    for rule in documents()["ClusterRole"]["rules"]:
        assert rule["verbs"] == ["list", "watch"]


def test_the_role_goes_to_the_charts_service_account():
    binding = documents()["ClusterRoleBinding"]

    assert binding["roleRef"]["name"] == documents()["ClusterRole"]["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "hub", "namespace": "jhub"}]
