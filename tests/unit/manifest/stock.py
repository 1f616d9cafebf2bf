"""KubeSpawner's pod, and accelerators to write into it."""

from typing import Any

from kubernetes_asyncio.client import ApiClient
from kubespawner.objects import make_pod

from gpuspawner.offers import Offers

Plain = dict[str, Any]

GI = 1024**3
OFFERS = Offers.parse(
    accelerators={
        "a100": {
            "counts": [1, 2],
            "node_selector": {"gpu": "a100"},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
            "environment": {"NCCL_DEBUG": "INFO"},
            "volumes": [{"name": "models", "hostPath": {"path": "/srv/models"}}],
            "volume_mounts": [{"name": "models", "mountPath": "/models", "readOnly": True}],
            "runtime_class": "nvidia",
            "shared_memory": "8Gi",
        },
        "mig": {
            "resource": "nvidia.com/mig-1g.5gb",
            "node_affinity": [
                {"matchExpressions": [{"key": "mig", "operator": "In", "values": ["1g", "all"]}]},
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["dgx"]}]},
            ],
        },
        "bare": {"node_selector": {"gpu": "bare"}},
    },
    images={"pytorch": {"image": "quay.io/jupyter/pytorch-notebook:cuda12"}},
)
A100, MIG, BARE = OFFERS.accelerators.values()
ALL = tuple(OFFERS.accelerators.values())


def stock(**settings: Any) -> Plain:
    """Return a pod as KubeSpawner makes it, in the API's form."""
    pod = make_pod("jupyter-anna", ["jupyterhub-singleuser"], 8888, "notebook:1", **settings)
    # ApiClient() would open a connection, which serialization doesn't need.
    made: Plain = ApiClient.sanitize_for_serialization(ApiClient.__new__(ApiClient), pod)
    return made


def server(pod: Plain) -> Plain:
    container: Plain = pod["spec"]["containers"][0]
    return container


def environment(pod: Plain) -> dict[str, str | None]:
    return {entry["name"]: entry.get("value") for entry in server(pod)["env"]}


def terms(pod: Plain) -> list[Plain]:
    node = pod["spec"]["affinity"]["nodeAffinity"]
    found: list[Plain] = node["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return found
