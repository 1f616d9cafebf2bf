"""An administrator's machine: helm, kubectl and pip, the chart, and a source folder of ours."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from localcluster import LocalCluster, Pods
from localcluster.fleet import load
from tests.helm.install.page import commands

ROOT = Path(__file__).parents[3]
_PACKAGING = ("LICENSE", "README.md", "pyproject.toml", "setup.cfg", "setup.py")
_SOURCE = ("gpuspawner", "helm-values", *_PACKAGING)
_REPOSITORY = "https://hub.jupyter.org/helm-chart/"


@pytest.fixture(scope="session")
def chart_folder() -> Path:
    folder = Path(os.environ.get("GPUSPAWNER_Z2JH_CHART", ""))
    if not (folder / "Chart.yaml").exists():
        pytest.skip("chart: GPUSPAWNER_Z2JH_CHART isn't a whole chart, which helm could install")
    return folder


@pytest.fixture(scope="session")
def image() -> Path:
    """The environment with the packages of the chart's hub image, and with pip."""
    folder = os.environ.get("GPUSPAWNER_HUB_IMAGE")
    if not folder:
        pytest.skip("chart: GPUSPAWNER_HUB_IMAGE names no environment with the image's packages")
    return Path(folder)


@pytest.fixture(scope="session")
def helm() -> Path:
    found = shutil.which("helm")
    if not found:
        pytest.skip("chart: there is no helm")
    return Path(found)


@dataclass(frozen=True)
class Administrator:
    """Somebody with a terminal in our source's root folder.

    Attributes:
        source: That folder.
        site: The folder of a web server at `address`.
    """

    source: Path
    site: Path
    address: str
    variables: dict[str, str]

    def run(self, command: str) -> str:
        """Run a command of the documentation, and print how long it took.

        Raises:
            AssertionError: It failed; the message is what it printed.
        """
        line = command.removeprefix("$ ").replace(_REPOSITORY, f"{self.address}/charts")
        start = time.monotonic()
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=self.source,
            env=self.variables,
            capture_output=True,
            text=True,
            check=False,
        )
        print(f"{time.monotonic() - start:5.1f} s  {command}")
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout

    def follow(self, section: str) -> None:
        """Run all commands of a section of the how-to."""
        for command in commands(section):
            self.run(command)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    """A cluster of the test's own, because the how-to's namespace is always jhub.

    Its nodes are fixed: with an autoscaler, the hub would first try a pod of each kind.
    """
    fleet = replace(load("demo"), autoscaler=None)
    with LocalCluster(tmp_path / "cluster", fleet=fleet, pods=Pods.RUN) as running:
        yield running


@pytest.fixture
def administrator(
    cluster: LocalCluster, chart_folder: Path, helm: Path, image: Path, tmp_path: Path
) -> Iterator[Administrator]:
    """The administrator of a cluster without a hub; the chart's repository is on this machine."""
    source, site, programs = tmp_path / "source", tmp_path / "site", tmp_path / "bin"
    for folder in (source, site / "charts", programs):
        folder.mkdir(parents=True)
    for name in _SOURCE:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    (programs / "helm").symlink_to(helm)
    (programs / "kubectl").symlink_to(cluster.directory / "kubectl")
    variables = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
        "PATH": os.pathsep.join([str(programs), str(image / "bin"), os.environ["PATH"]]),
        "HOME": str(tmp_path),
        "KUBECONFIG": str(cluster.kubeconfig),
    }
    with _serving(site) as address:
        person = Administrator(source, site, address, variables)
        person.run(f"helm package {chart_folder} --destination {site}/charts")
        person.run(f"helm repo index {site}/charts")
        yield person


@contextmanager
def _serving(folder: Path) -> Iterator[str]:
    """Serve a folder until the block ends; the value is its address."""
    handler = partial(_Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Log nothing."""
