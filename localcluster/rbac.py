"""The hub's rights: those of the Zero-to-JupyterHub chart and of rbac.yaml, and no others."""

from pathlib import Path
from typing import Any

import yaml

from localcluster.client import unless_there
from localcluster.cluster import LocalCluster

#: What administrators apply in addition to the chart; written for the namespace jhub.
MANIFEST = Path(__file__).parent.parent / "helm-values" / "rbac.yaml"

#: The rules of the Role that Zero-to-JupyterHub 4.4.0 gives its hub.
CHART_RULES = [
    {
        "apiGroups": [""],
        "resources": ["pods", "persistentvolumeclaims", "secrets", "services"],
        "verbs": ["get", "watch", "list", "create", "delete"],
    },
    {"apiGroups": [""], "resources": ["events"], "verbs": ["get", "watch", "list"]},
]

_GROUP = "rbac.authorization.k8s.io"
_WRITTEN_FOR = "jhub"


def hub_kubeconfig(cluster: LocalCluster, namespace: str) -> Path:
    """Return a kubeconfig for the service account ``hub`` of a namespace; grant its rights first.

    Objects that exist already stay as they are.
    """
    for item in (*chart_objects(namespace), *manifest_objects(namespace)):
        scope = item["metadata"].get("namespace")
        folder = f"/apis/{item['apiVersion']}" + (f"/namespaces/{scope}" if scope else "")
        with unless_there():
            cluster.api.create(f"{folder}/{item['kind'].lower()}s", item)
    return cluster.service_account_kubeconfig(namespace, "hub")


def chart_objects(namespace: str) -> list[dict[str, Any]]:
    """Return the chart's Role and RoleBinding for its hub."""
    metadata = {"name": "hub", "namespace": namespace}
    api_version = f"{_GROUP}/v1"
    return [
        {"apiVersion": api_version, "kind": "Role", "metadata": metadata, "rules": CHART_RULES},
        {
            "apiVersion": api_version,
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": _GROUP, "kind": "Role", "name": "hub"},
            "subjects": [{"kind": "ServiceAccount", "name": "hub", "namespace": namespace}],
        },
    ]


def manifest_objects(namespace: str, manifest: Path = MANIFEST) -> list[dict[str, Any]]:
    """Return the objects of a manifest as an administrator adapts them to this namespace."""
    text = manifest.read_text().replace(_WRITTEN_FOR, namespace)
    return [item for item in yaml.safe_load_all(text) if item]
