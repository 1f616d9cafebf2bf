"""The how-to's commands that put the wheels into ConfigMaps, on a real API server."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from localcluster import LocalCluster
from tests.helm.chart import read
from tests.helm.install.page import commands

NAMES = ("gpuspawner", "msgspec", "regex")
ALMOST_A_MEBIBYTE = 1_040_000


class Wheels:
    """A folder `wheels`, as pip fills it, and the ConfigMaps that are made from it."""

    def __init__(self, cluster: LocalCluster, namespace: str, folder: Path) -> None:
        self._cluster, self._namespace, self._folder = cluster, namespace, folder

    def put(self, name: str, version: int, size: int = ALMOST_A_MEBIBYTE) -> None:
        """Replace a wheel, as `rm -rf wheels` and pip do."""
        folder = self._folder / "wheels" / name
        folder.mkdir(parents=True, exist_ok=True)
        for older in folder.iterdir():
            older.unlink()
        (folder / f"{name}-{version}-py3-none-any.whl").write_bytes(secrets.token_bytes(size))

    def store(self) -> list[int]:
        """Run the commands with kubectl; return their exit statuses."""
        path = os.pathsep.join([str(self._cluster.directory), os.environ["PATH"]])
        environment = {**os.environ, "PATH": path, "KUBECONFIG": str(self._cluster.kubeconfig)}
        lines = [it.removeprefix("$ ") for it in commands("A ConfigMap") if "kubectl" in it]
        return [
            subprocess.run(
                ["sh", "-c", line.replace("--namespace jhub", f"--namespace {self._namespace}")],
                cwd=self._folder,
                env=environment,
                check=False,
            ).returncode
            for line in lines
        ]

    def stored(self, name: str) -> dict[str, Any]:
        """The ConfigMap with a wheel."""
        path = f"/api/v1/namespaces/{self._namespace}/configmaps/wheel-of-{name}"
        return self._cluster.api.get(path)


@pytest.fixture
def wheels(cluster: LocalCluster, namespace: str, tmp_path: Path) -> Iterator[Wheels]:
    made = Wheels(cluster, namespace, tmp_path)
    for name in NAMES:
        made.put(name, version=1)
    yield made
    for name in NAMES:
        cluster.api.delete(f"/api/v1/namespaces/{namespace}/configmaps/wheel-of-{name}")


def test_a_wheel_may_take_almost_all_of_what_a_configmap_holds(wheels: Wheels) -> None:
    """What counts are the wheel's bytes, not those of its text in base64; and no second copy."""
    assert wheels.store() == [0, 0, 0]

    assert list(wheels.stored("regex")["binaryData"]) == ["regex-1-py3-none-any.whl"]
    assert "annotations" not in wheels.stored("regex")["metadata"]


def test_the_same_commands_replace_a_wheel(wheels: Wheels) -> None:
    wheels.store()
    wheels.put("gpuspawner", version=2)

    assert wheels.store() == [0, 0, 0]

    # With two of them, pip would refuse both.
    assert list(wheels.stored("gpuspawner")["binaryData"]) == ["gpuspawner-2-py3-none-any.whl"]


def test_a_wheel_that_is_too_long_leaves_the_earlier_one(wheels: Wheels) -> None:
    wheels.store()
    wheels.put("gpuspawner", version=2, size=1024 * 1024 + 1)

    assert wheels.store() == [1, 0, 0]

    assert list(wheels.stored("gpuspawner")["binaryData"]) == ["gpuspawner-1-py3-none-any.whl"]


def test_the_hub_s_pod_gets_each_of_them() -> None:
    volumes = read("install-from-configmap")["hub"]["extraVolumes"]
    [sources] = [it["projected"]["sources"] for it in volumes if "projected" in it]

    assert [it["configMap"]["name"] for it in sources] == [f"wheel-of-{name}" for name in NAMES]
