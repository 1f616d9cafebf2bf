"""Our containers in a namespace whose quota counts CPU and memory, on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from gpuspawner.offers.gpu_check import with_gpu_check
from localcluster import ApiError, LocalCluster
from tests.helm.chart import VALUES, merged, read
from tests.waiting import wait_for

Object = dict[str, Any]

WITHOUT_AN_IMAGE = ("install-from-index", "install-from-configmap")
#: What an administrator gives the chart's hub; the least that JupyterHub runs with.
RESOURCES = {
    "requests": {"cpu": "200m", "memory": "512Mi"},
    "limits": {"cpu": "200m", "memory": "512Mi"},
}
HARD = {f"{of}.{name}": amount for of, each in RESOURCES.items() for name, amount in each.items()}


class Limited:
    """A namespace where the quota is just enough for the chart's hub."""

    def __init__(self, cluster: LocalCluster, namespace: str) -> None:
        self._api = cluster.api
        self._path = f"/api/v1/namespaces/{namespace}"
        quota = {"metadata": {"name": "all"}, "spec": {"hard": HARD}}
        self._api.create(f"{self._path}/resourcequotas", quota)
        wait_for(lambda: not self.takes(pod({"name": "x", "image": "x"})))

    def takes(self, body: Object) -> bool:
        """Whether the API server accepts a pod, which stays away."""
        try:
            self._api.create(f"{self._path}/pods?dryRun=All", body)
        except ApiError as error:
            if error.status != 403:
                raise
            return False
        return True


@pytest.fixture
def limited(cluster: LocalCluster, namespace: str) -> Iterator[Limited]:
    yield Limited(cluster, namespace)
    cluster.api.delete(f"/api/v1/namespaces/{namespace}/resourcequotas/all")


def pod(*containers: Object, **spec: object) -> Object:
    return {"metadata": {"name": "a"}, "spec": {"containers": list(containers), **spec}}


def hub(*files: Object) -> Object:
    """Return the hub's pod as templates/hub/deployment.yaml of the chart 4.4.0 makes it."""
    values = merged(*files, {"hub": {"resources": RESOURCES}})["hub"]
    container = {"name": "hub", "image": "hub", "resources": values["resources"]}
    container["volumeMounts"] = values.get("extraVolumeMounts", [])
    more = {"initContainers": "initContainers", "volumes": "extraVolumes"}
    return pod(container, **{key: values[name] for key, name in more.items() if name in values})


@pytest.mark.parametrize("way", WITHOUT_AN_IMAGE)
def test_the_hub_starts_where_the_stock_hub_does_and_takes_no_more(limited: Limited, way: str):
    assert limited.takes(hub())

    assert limited.takes(hub(read("base"), read(way)))


def test_the_puller_of_images_with_cuda_starts(limited: Limited):
    puller = yaml.safe_load((VALUES / "pull-images.yaml").read_text())["spec"]["template"]

    assert limited.takes({**puller, "metadata": {**puller["metadata"], "name": "puller"}})


def test_a_server_whose_gpus_are_checked_starts_where_it_does_without_the_check(limited: Limited):
    resources = {of: {**amounts, "nvidia.com/gpu": "1"} for of, amounts in RESOURCES.items()}
    server = pod({"name": "notebook", "image": "lab", "args": ["lab"], "resources": resources})
    checked = with_gpu_check(server)
    assert len(checked["spec"]["initContainers"]) == 1

    assert limited.takes(server)
    assert limited.takes(checked)
