"""A hub sends the API server what the documentation's table lists, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from localcluster import LocalCluster, Pods, rbac
from tests.docs.test_requests import IN_ANY_VERSION, ROWS
from tests.hub.configurations import T4, t4_nodes
from tests.hub.conftest import SPAWNING
from tests.hub.pods import Pods as HubPods
from tests.hub.running import running_hub
from tests.servers import single_user

NAMESPACE = "audited"
AUDIT = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
"""
# What makes the hub count its servers, and ask for a home directory.
MORE = """
c.GPUSpawner.policies = {"all": {"gpus_per_user": 1}}
c.GPUSpawner.queue = True
c.KubeSpawner.storage_pvc_ensure = True
c.KubeSpawner.pvc_name_template = "claim-{username}"
c.KubeSpawner.storage_capacity = "1Gi"
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "audit.log"


@pytest.fixture
def audited(tmp_path: Path, log: Path) -> Iterator[LocalCluster]:
    """A cluster whose API server notes each request."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(AUDIT)
    flags = [f"--audit-policy-file={policy}", f"--audit-log-path={log}"]
    with LocalCluster(
        tmp_path / "cluster",
        fleet=t4_nodes(1, 1),
        pods=Pods.RUN,
        flags={"kube-apiserver": flags},
    ) as cluster:
        cluster.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        yield cluster


def requests_of_the_hub(log: Path) -> set[tuple[str, str]]:
    """The verbs and paths, as the documentation writes them."""
    found = set()
    for line in log.read_text().splitlines():
        event = json.loads(line)
        if event["user"]["username"] == f"system:serviceaccount:{NAMESPACE}:hub":
            path = urlsplit(event["requestURI"]).path
            path = path.replace(f"/namespaces/{NAMESPACE}/", "/namespaces/NAMESPACE/")
            path = re.sub(r"(/NAMESPACE/\w+/)[^/]+$", r"\1NAME", path)
            found.add((event["verb"], re.sub(IN_ANY_VERSION, r"\1VERSION/", path)))
    return found


def test_a_hub_sends_only_the_requests_of_the_documentation(
    audited: LocalCluster, log: Path, tmp_path: Path
) -> None:
    kubeconfig = rbac.hub_kubeconfig(audited, NAMESPACE)
    lines = SPAWNING.format(namespace=NAMESPACE, server=single_user.COMMAND, more=T4 + MORE)
    folder = tmp_path / "hub"
    folder.mkdir()
    environment = {"KUBECONFIG": str(kubeconfig)}
    with running_hub(
        folder, lines, environment=environment, pods=HubPods(audited, NAMESPACE)
    ) as hub:
        hub.until_it_sees_the_cluster()
        hub.start("ann", {"accelerator": "t4"})
        hub.stop("ann")
    sent = requests_of_the_hub(log)

    listed = {(verb, path) for verbs, path, _ in ROWS for verb in verbs}
    assert sent - listed == set()
    assert ("watch", "/api/v1/nodes") in sent
    assert ("create", "/api/v1/namespaces/NAMESPACE/pods") in sent
    assert ("create", "/api/v1/namespaces/NAMESPACE/persistentvolumeclaims") in sent
