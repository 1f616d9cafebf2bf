"""The objects and files that Kueue reads."""

from collections.abc import Mapping
from typing import Any

from localcluster.client import Object

GROUP = "kueue.x-k8s.io"
API = f"/apis/{GROUP}/v1beta2"
QUEUE_LABEL = f"{GROUP}/queue-name"
MANAGED = {"kueue-managed": "true"}
"""The label of namespaces whose pods Kueue may queue."""
NAMESPACE, SERVICE, SECRET = "kueue-system", "kueue-webhook-service", "kueue-webhook-server-cert"
_CONVERTED = ("localqueues", "clusterqueues", "workloads", "cohorts", "multikueueclusters")
"""The CRDs that Kueue converts between its versions (``config/components/crd/patches``)."""
_OURS = ("-v1-pod", "-clusterqueue", "-cohort", "-resourceflavor", "-workload")
"""How the paths of the webhooks end that are needed to queue pods."""


def configuration(certificates: str, webhook: int, metrics: int, health: int) -> Object:
    """Return Kueue's configuration; it makes its own certificates.

    Args:
        certificates: the directory with the webhooks' certificate.
        webhook: the port of the webhooks.
        metrics: the port of the metrics.
        health: the port of the probes.
    """
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "metrics": {"bindAddress": f"127.0.0.1:{metrics}"},
        "webhook": {"host": "127.0.0.1", "port": webhook, "certDir": certificates},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {
            "enable": True,
            "webhookServiceName": SERVICE,
            "webhookSecretName": SECRET,
        },
        # Its server of pending workloads would write its certificate to /visibility.
        "featureGates": {"VisibilityOnDemand": False},
        "integrations": {"frameworks": ["pod"]},
        "managedJobsNamespaceSelector": {"matchLabels": MANAGED},
    }


def webhook_service() -> Object:
    """Return the Service that leads the API server to Kueue's webhooks on this machine."""
    spec = {"type": "ExternalName", "externalName": "127.0.0.1"}
    return {"metadata": {"name": SERVICE, "namespace": NAMESPACE}, "spec": spec}


def converting(crd: Object, port: int) -> Object:
    """Return a CRD whose versions Kueue converts, if it does."""
    if crd["spec"]["names"]["plural"] not in _CONVERTED:
        return crd
    webhook = {"clientConfig": _client("/convert", port), "conversionReviewVersions": ["v1"]}
    return {
        **crd,
        "spec": {**crd["spec"], "conversion": {"strategy": "Webhook", "webhook": webhook}},
    }


def webhooks(manifest: Object, port: int) -> Object:
    """Return a configuration of Kueue's webhooks for what it queues here.

    Kueue itself finds the configuration by this name, and writes its CA into it.
    """
    kind = manifest["metadata"]["name"]
    return {
        **manifest,
        "metadata": {"name": f"kueue-{kind}"},
        "webhooks": [
            _webhook(it, port)
            for it in manifest["webhooks"]
            if it["clientConfig"]["service"]["path"].endswith(_OURS)
        ],
    }


def _webhook(given: Object, port: int) -> Object:
    path = given["clientConfig"]["service"]["path"]
    made = {**given, "clientConfig": _client(path, port)}
    if path.endswith("-v1-pod"):
        made["namespaceSelector"] = {"matchLabels": MANAGED}
    return made


def _client(path: str, port: int) -> Object:
    return {"service": {"namespace": NAMESPACE, "name": SERVICE, "path": path, "port": port}}


def resource_flavor(name: str, **spec: Any) -> Object:
    """Return a ResourceFlavor; *spec* has ``nodeLabels``, ``nodeTaints``, ``tolerations``."""
    return _object("ResourceFlavor", name, spec)


def cluster_queue(
    name: str, flavors: Mapping[str, Mapping[str, Mapping[str, str]]], **spec: Any
) -> Object:
    """Return a ClusterQueue with one group of resources, for all namespaces.

    Args:
        name: its name.
        flavors: each flavor's quotas, by resource: ``{"t4": {"nvidia.com/gpu": {"nominalQuota":
            "2"}}}``. All flavors have the same resources.
        spec: more of its fields, such as ``cohortName`` and ``preemption``.
    """
    groups = [
        {
            "coveredResources": list(next(iter(flavors.values()))),
            "flavors": [
                {"name": flavor, "resources": [{"name": it, **quota} for it, quota in own.items()]}
                for flavor, own in flavors.items()
            ],
        }
    ]
    return _object(
        "ClusterQueue", name, {"namespaceSelector": {}, "resourceGroups": groups, **spec}
    )


def local_queue(name: str, namespace: str, cluster_queue: str, **spec: Any) -> Object:
    """Return a LocalQueue of a namespace."""
    made = _object("LocalQueue", name, {"clusterQueue": cluster_queue, **spec})
    made["metadata"]["namespace"] = namespace
    return made


def priority_class(name: str, value: int) -> Object:
    """Return a WorkloadPriorityClass."""
    kind = {"apiVersion": f"{GROUP}/v1beta2", "kind": "WorkloadPriorityClass"}
    return {**kind, "metadata": {"name": name}, "value": value}


def _object(kind: str, name: str, spec: Mapping[str, Any]) -> Object:
    metadata: Object = {"name": name}
    return {
        "apiVersion": f"{GROUP}/v1beta2",
        "kind": kind,
        "metadata": metadata,
        "spec": dict(spec),
    }
