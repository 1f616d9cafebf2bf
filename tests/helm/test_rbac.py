"""The rights that rbac.yaml gives beside what the live view reads."""

from __future__ import annotations

import yaml

from gpuspawner.cluster.kinds import KINDS
from tests.helm.chart import VALUES


def documents() -> dict[str, dict]:
    text = (VALUES / "rbac.yaml").read_text()
    return {document["kind"]: document for document in yaml.safe_load_all(text)}


def test_the_hub_may_read_what_the_view_follows_and_nothing_else():
    (rule,) = documents()["ClusterRole"]["rules"]

    assert rule["apiGroups"] == [""]
    assert sorted(rule["resources"]) == sorted(kind.plural for kind in KINDS)


def test_it_may_only_read():
    for rule in documents()["ClusterRole"]["rules"]:
        assert rule["verbs"] == ["get", "list", "watch"]


def test_the_role_goes_to_the_charts_service_account():
    binding = documents()["ClusterRoleBinding"]

    assert binding["roleRef"]["name"] == documents()["ClusterRole"]["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "hub", "namespace": "jhub"}]
