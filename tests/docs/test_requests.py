"""The table of requests: what the code asks is in it, and the files that it names grant that."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from gpuspawner.cluster.kinds import KINDS, KUEUE_KINDS, SCALING_KINDS, pod_events, servers_of
from gpuspawner.cluster.unwatched_objects import RUNTIME_CLASSES, SLICES
from localcluster.rbac import CHART_RULES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/requests.md").read_text()
ROWS = [
    (verbs.split(", "), path, right)
    for verbs, paths, right in re.findall(r"^\| ([a-z, ]+) \| (`.*?) \| .* \| (.*) \|$", PAGE, re.M)
    for path in re.findall(r"`(.*?)`", paths)
]
FOLLOWED = [*KINDS, *SCALING_KINDS, *KUEUE_KINDS, servers_of("NAMESPACE"), pod_events("NAMESPACE")]
IN_ANY_VERSION = r"(/apis/(?:karpenter\.sh|kueue\.x-k8s\.io)/)v\w+/"


@pytest.mark.parametrize("path", [it.path for it in FOLLOWED])
def test_the_table_has_what_the_hub_follows(path: str) -> None:
    written = re.sub(IN_ANY_VERSION, r"\1VERSION/", path)

    assert any(it == written and verbs == ["list", "watch"] for verbs, it, _ in ROWS)


@pytest.mark.parametrize("path", [RUNTIME_CLASSES, SLICES])
def test_the_table_has_what_is_asked_once(path: str) -> None:
    assert any(it == path and verbs == ["list"] for verbs, it, _ in ROWS)


def rules(granted_by: str) -> list[dict[str, list[str]]]:
    if granted_by == "the chart's Role":
        return CHART_RULES
    name = granted_by.strip("`")
    objects = yaml.safe_load_all((ROOT / "helm-values" / name).read_text())
    return [rule for it in objects for rule in it.get("rules", [])]


@pytest.mark.parametrize(("verbs", "path", "right"), ROWS, ids=[path for _, path, _ in ROWS])
def test_the_right_that_a_row_names_covers_its_request(
    verbs: list[str], path: str, right: str
) -> None:
    if right in ("everybody", "a ClusterRole of your own"):
        return
    parts = path.replace("namespaces/NAMESPACE/", "").replace("namespaces/kube-system/", "")
    _, root, group, *rest = parts.split("/")
    group, resource = ("", rest[0]) if root == "api" else (group, rest[1])

    assert any(
        group in it["apiGroups"] and resource in it["resources"] and set(verbs) <= {*it["verbs"]}
        for it in rules(right)
    )
