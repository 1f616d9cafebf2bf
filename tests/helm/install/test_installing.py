"""Each way to install, with the how-to's own commands, until one user is granted a GPU."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from localcluster import ApiError, LocalCluster
from localcluster.ports import free_ports
from tests.helm.install import dockerfile
from tests.helm.install.conftest import Administrator
from tests.helm.install.page import commands
from tests.helm.install.pod_as_processes import PodAsProcesses
from tests.hub.people import Person
from tests.hub.proxy import TOKEN, running_proxy
from tests.servers import single_user
from tests.waiting import wait_for

# What this machine needs: processes share its network, so the names of Services lead nowhere, and
# nothing provisions volumes, pulls images or runs a second scheduler here.
MINE = """
hub:
  resources: {resources}
  config:
    JupyterHub: {{authenticator_class: dummy}}
    Authenticator: {{allow_all: true}}
    ConfigurableHTTPProxy: {{auth_token: {token}}}
  db: {{type: sqlite-memory}}
  extraConfig:
    network: |
      c.JupyterHub.hub_bind_url = c.JupyterHub.hub_connect_url = "http://127.0.0.1:{hub}"
      c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api}"
singleuser:
  cmd: {cmd}
  memory: {{guarantee: 256M}}
  storage: {{type: none}}
  cloudMetadata: {{blockWithIptables: false}}
prePuller: {{hook: {{enabled: false}}}}
scheduling: {{userScheduler: {{enabled: false}}}}
"""

# Just enough for the stock hub.
RESOURCES = {
    "requests": {"cpu": "200m", "memory": "512Mi"},
    "limits": {"cpu": "200m", "memory": "512Mi"},
}
HARD = {f"{of}.{name}": amount for of, each in RESOURCES.items() for name, amount in each.items()}

# The packages that gpuspawner needs and the image doesn't have.
LACKS = ("msgspec", "regex")


CONFIGURATION = "/usr/local/etc/jupyterhub/jupyterhub_config.py"


@dataclass(frozen=True)
class Hub:
    url: str
    pod: PodAsProcesses


class Installation:
    """A hub that the administrator installs by the how-to.

    Attributes:
        image: The environment that stands for the image of the hub's pod.
    """

    def __init__(
        self, cluster: LocalCluster, administrator: Administrator, image: Path, folder: Path
    ) -> None:
        self._cluster = cluster
        self._administrator = administrator
        self.image = image
        self._folder = folder
        self._public, self._hub, self._api = free_ports(3)
        mine = MINE.format(
            hub=self._hub,
            api=self._api,
            token=TOKEN,
            cmd=single_user.COMMAND,
            resources=json.dumps(RESOURCES),
        )
        (administrator.source / "mine.yaml").write_text(mine)

    def upgrade(self, way: str, more: str = "", **written: str) -> None:
        """Run the upgrade for this way, with more arguments, and words replaced in the values."""
        values, *others = commands("4. Upgrade the release")
        self._administrator.run(values.replace("install-from-configmap", way))
        file = self._administrator.source / "gpuspawner.yaml"
        for name, text in written.items():
            file.write_text(file.read_text().replace(name, text))
        for command in others:
            self._administrator.run(command.replace("upgrade", f"upgrade {more}", 1))

    def passes_the_strictest_standard_for_pods(self) -> None:
        """Let the API server's admission check the hub's pod, without creating it."""
        name, label = "strict", "pod-security.kubernetes.io/enforce"
        strict = {"metadata": {"name": name, "labels": {label: "restricted"}}}
        api = self._cluster.api
        api.create("/api/v1/namespaces", strict)
        api.create(f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "hub"}})
        pod = {"metadata": {"name": "hub"}, "spec": self.pod_spec}
        api.create(f"/api/v1/namespaces/{name}/pods?dryRun=All", pod)

    def fits_the_quota_of_the_stock_hub(self) -> None:
        """Let a quota on CPU and memory check the hub's pod, without creating it."""
        api, path = self._cluster.api, "/api/v1/namespaces/limited"
        api.create("/api/v1/namespaces", {"metadata": {"name": "limited"}})
        api.create(f"{path}/serviceaccounts", {"metadata": {"name": "hub"}})
        api.create(f"{path}/resourcequotas", {"metadata": {"name": "a"}, "spec": {"hard": HARD}})

        def rejection(spec: dict[str, Any]) -> str:
            try:
                api.create(f"{path}/pods?dryRun=All", {"metadata": {"name": "hub"}, "spec": spec})
            except ApiError as error:
                return str(error)
            return ""

        bare = {"containers": [{"name": "x", "image": "x"}]}
        wait_for(lambda: "must specify" in rejection(bare))
        assert rejection(self.pod_spec) == ""

    @property
    def pod_spec(self) -> dict[str, Any]:
        path = "/apis/apps/v1/namespaces/jhub/deployments/hub"
        spec: dict[str, Any] = self._cluster.api.get(path)["spec"]["template"]["spec"]
        return spec

    @contextmanager
    def running(self) -> Iterator[Hub]:
        """Run what the chart has made of our values, with the rights of its ServiceAccount."""
        start = time.monotonic()
        pod = PodAsProcesses(self._cluster, "jhub", "hub", self.image, self._folder)
        pod.run_init_containers()
        proxy = running_proxy(self._folder, self._public, self._api, self._hub)
        with proxy, pod.running() as process:

            def said(line: str) -> bool:
                process.check()
                return line in pod.log

            wait_for(lambda: said("The view of the cluster is live."), timeout=120)
            address = f"http://127.0.0.1:{self._public}"
            wait_for(lambda: requests.get(f"{address}/hub/health", timeout=5).ok)
            print(f"{time.monotonic() - start:5.1f} s  until the hub serves and sees the cluster")
            yield Hub(address, pod)


def passes_the_doctor(hub: Hub) -> None:
    """The how-to's last check finds nothing wrong, and names what users can start."""
    [command] = [it for it in commands("5. Check it") if "doctor" in it]
    words = command.partition(" -- ")[2].split()
    # Here a command doesn't find the file by itself: its folder isn't at the root.
    done = hub.pod.execute([*words, "--config", CONFIGURATION])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Users can start tesla-t4 now. [offer]" in done.stdout
    assert "0 errors, 0 warnings" in done.stdout


def grants_and_refuses(hub: Hub) -> None:
    """The only T4 goes to alice, so bob is refused."""
    alice = Person(hub, "alice").log_in()
    assert alice.submit({"accelerator": "tesla-t4"}).is_of_a_start
    wait_for(lambda: "/user/alice/" in alice.open("/hub/user-redirect/").url)

    page = Person(hub, "bob").log_in().submit({"accelerator": "tesla-t4"})
    assert "The one NVIDIA Tesla T4 is in use right now." in page.text


@pytest.fixture
def installation(
    cluster: LocalCluster, administrator: Administrator, image: Path, tmp_path: Path
) -> Installation:
    (tmp_path / "hub").mkdir()
    return Installation(cluster, administrator, image, tmp_path / "hub")


def test_without_an_image_and_without_network(
    installation: Installation, administrator: Administrator, tmp_path: Path
) -> None:
    """An existing hub: its values are those that helm knows."""
    administrator.run("helm repo add jupyterhub https://hub.jupyter.org/helm-chart/")
    administrator.run(
        "helm install jhub jupyterhub/jupyterhub --namespace jhub --create-namespace"
        " --version 4.4.0 --values mine.yaml"
    )
    (administrator.source / "mine.yaml").unlink()

    administrator.follow("1. Find your values")
    found = (administrator.source / "mine.yaml").read_text()
    stock = installation.pod_spec
    administrator.follow("2. Give the hub its rights")
    administrator.follow("A ConfigMap")
    installation.upgrade("install-from-configmap")

    installation.passes_the_strictest_standard_for_pods()
    installation.fits_the_quota_of_the_stock_hub()
    with installation.running() as hub:
        passes_the_doctor(hub)
        grants_and_refuses(hub)
    installed = (tmp_path / "hub" / "volumes" / "gpuspawner").glob("*.dist-info")
    assert {path.name.partition("-")[0] for path in installed} == {"gpuspawner", *LACKS}

    # The first step, done again, freezes nothing of this: an image replaces the wheels.
    administrator.follow("1. Find your values")
    assert (administrator.source / "mine.yaml").read_text() == found
    installation.upgrade("install-image")
    (container,) = installation.pod_spec["containers"]
    assert container["image"].startswith("REGISTRY/")
    assert "/opt/gpuspawner" not in str(installation.pod_spec)

    administrator.follow("Remove it")
    assert installation.pod_spec == stock


def test_removal_leaves_nothing_of_gpuspawner_if_mine_yaml_is_empty(
    installation: Installation, administrator: Administrator
) -> None:
    """Helm keeps the values of a release if none are named."""
    (administrator.source / "mine.yaml").write_text("")
    administrator.run("kubectl create namespace jhub")
    administrator.follow("2. Give the hub its rights")
    # The chart's hooks wait for pods that nothing runs here.
    installation.upgrade("install-image", "--no-hooks")
    assert "REGISTRY/" in str(installation.pod_spec)

    remove, *others = commands("Remove it")
    for command in (remove.replace("upgrade", "upgrade --no-hooks", 1), *others):
        administrator.run(command)

    values = administrator.run("helm get values jhub --namespace jhub --output yaml")
    assert not yaml.safe_load(values)
    assert "REGISTRY/" not in str(installation.pod_spec)
    rights = administrator.run("kubectl get clusterroles,clusterrolebindings --output name")
    assert "gpuspawner" not in rights


def test_without_an_image_from_a_package_index(
    installation: Installation, administrator: Administrator
) -> None:
    administrator.run("kubectl create namespace jhub")
    administrator.follow("2. Give the hub its rights")
    *build, hashing = commands("A package index")
    for command in (*build, *commands("A ConfigMap")):
        if command.startswith("$ pip"):
            administrator.run(command)
    (hash_,) = re.findall(r"--hash=sha256:(\w+)", administrator.run(hashing))
    [newer] = administrator.source.glob("wheels/gpuspawner/gpuspawner-*.whl")
    newer.unlink()
    wheels = (
        *administrator.source.glob("dist/*.whl"),
        *administrator.source.glob("wheels/*/*.whl"),
    )
    for wheel in wheels:
        project = administrator.site / "simple" / wheel.name.partition("-")[0]
        project.mkdir(parents=True)
        shutil.move(wheel, project)
    index = administrator.address.removeprefix("http://")
    installation.upgrade("install-from-index", ADDRESS=index, HASH=hash_, https="http")

    installation.passes_the_strictest_standard_for_pods()
    installation.fits_the_quota_of_the_stock_hub()
    with installation.running() as hub:
        passes_the_doctor(hub)
        grants_and_refuses(hub)


def test_as_an_image(
    installation: Installation, administrator: Administrator, image: Path, tmp_path: Path
) -> None:
    administrator.run("kubectl create namespace jhub")
    administrator.follow("2. Give the hub its rights")
    for command in commands("An image"):
        if not command.startswith("$ docker"):
            administrator.run(command)
    own = dockerfile.copy_of(image, tmp_path / "image")
    before = dockerfile.installed(own)
    (tmp_path / "tmp").mkdir()
    source = administrator.source
    dockerfile.build(source / "helm-values/hub.Dockerfile", source, own, tmp_path / "tmp")
    installation.upgrade("install-image")

    (container,) = installation.pod_spec["containers"]
    assert container["image"] == "REGISTRY/k8s-hub-gpuspawner:4.4.0-1"
    after = dockerfile.installed(own)
    assert before <= after
    assert {re.split("[ =]", line)[0] for line in after - before} == {"gpuspawner", *LACKS}
    installation.image = own
    with installation.running() as hub:
        passes_the_doctor(hub)
        grants_and_refuses(hub)
