"""Runs the hub's pod as processes: what a kubelet does with its volumes, variables and containers.

The processes see this machine's own root folder. So the pod's files are below another folder, and
each path in them, in the arguments and in the variables begins with that folder.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from localcluster import LocalCluster
from localcluster.processes import Process

Object = dict[str, Any]

#: Where the hub's image runs; a volume may be mounted over it.
_WORKING_DIRECTORY = "/srv/jupyterhub"
_CONFIGURATION = "/usr/local/etc/jupyterhub"


class PodAsProcesses:
    """The pod of a Deployment.

    Args:
        cluster: The cluster with the Deployment, its ConfigMaps and its Secrets.
        namespace: The Deployment's namespace.
        name: The Deployment's name.
        image: The environment that stands for the image: its programs are in ``bin``.
        folder: An empty folder for the pod's files.
    """

    def __init__(
        self, cluster: LocalCluster, namespace: str, name: str, image: Path, folder: Path
    ) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._image = image
        self._folder = folder
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
        self.spec: Object = cluster.api.get(path)["spec"]["template"]["spec"]
        self._volumes = {volume["name"]: self._fill(volume) for volume in self.spec["volumes"]}
        self._root = folder / "root"
        (self._root / _WORKING_DIRECTORY[1:]).mkdir(parents=True)
        account = self.spec["serviceAccountName"]
        self._kubeconfig = cluster.service_account_kubeconfig(namespace, account)

    def run_init_containers(self) -> None:
        """Run the init containers, one after the other.

        Raises:
            AssertionError: One failed; the message is what it printed.
        """
        for container in self.spec.get("initContainers", []):
            done = subprocess.run(
                self._prepare(container),
                env=self._variables(container),
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr

    @contextmanager
    def running(self) -> Iterator[Process]:
        """Run the only container until the block ends; its log is `hub.log` in the folder."""
        (container,) = self.spec["containers"]
        process = Process(
            container["name"],
            self._prepare(container),
            self._folder / "hub.log",
            self._variables(container),
            directory=self._root / _WORKING_DIRECTORY[1:],
        )
        try:
            yield process
        finally:
            process.stop()

    def execute(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        """Run another command in the only container, as `kubectl exec` does."""
        (container,) = self.spec["containers"]
        return subprocess.run(
            [self._moved(word, [_CONFIGURATION]) for word in command],
            env=self._variables(container),
            cwd=self._root / _WORKING_DIRECTORY[1:],
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def log(self) -> str:
        return (self._folder / "hub.log").read_text(errors="replace")

    def _fill(self, volume: Object) -> Path:
        """Write a volume's files, and return its folder."""
        folder = self._folder / "volumes" / str(volume["name"])
        folder.mkdir(parents=True)
        sources = volume.get("projected", {}).get("sources", [volume])
        for source in sources:
            if "configMap" in source:
                self._write(folder, "configmaps", source["configMap"]["name"])
            elif "secret" in source:
                self._write(folder, "secrets", source["secret"]["secretName"])
            else:
                assert {"emptyDir", "persistentVolumeClaim"} & set(source), source
        return folder

    def _write(self, folder: Path, plural: str, name: str) -> None:
        found = self._get(plural, name)
        texts, encoded = found.get("data", {}), dict(found.get("binaryData", {}))
        if plural == "secrets":
            texts, encoded = {}, texts
        for key, text in texts.items():
            (folder / key).write_text(text)
        for key, text in encoded.items():
            (folder / key).write_bytes(base64.b64decode(text))

    def _prepare(self, container: Object) -> list[str]:
        """Mount a container's volumes, and return its command."""
        for mount in container.get("volumeMounts", []):
            target = self._root / mount["mountPath"].strip("/")
            source = self._volumes[mount["name"]] / mount.get("subPath", "")
            if not source.is_dir():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)
                target.write_text(self._moved(target.read_text(), [_CONFIGURATION]))
            elif not target.is_symlink():
                target.parent.mkdir(parents=True, exist_ok=True)
                if target.exists():
                    target.rmdir()
                target.symlink_to(source)
        words = [*container.get("command", []), *container.get("args", [])]
        return [self._moved(word, self._mounted(container)) for word in words]

    def _mounted(self, container: Object) -> list[str]:
        return [mount["mountPath"].rstrip("/") for mount in container.get("volumeMounts", [])]

    def _moved(self, text: str, paths: list[str]) -> str:
        """Put our folder before these paths; no path is part of another."""
        for path in paths:
            text = text.replace(path, f"{self._root}{path}")
        return text

    def _variables(self, container: Object) -> dict[str, str]:
        """Return a container's variables: the image's, those of Services, and its own."""
        variables = {
            "PATH": f"{self._image / 'bin'}{os.pathsep}{os.defpath}",
            "HOME": str(self._folder),
            "KUBECONFIG": str(self._kubeconfig),
        }
        for service in self._cluster.api.items(self._path("services")):
            name = service["metadata"]["name"].upper().replace("-", "_")
            variables[f"{name}_SERVICE_PORT"] = str(service["spec"]["ports"][0]["port"])
        for entry in container.get("env", []):
            variables[entry["name"]] = self._value(entry, container)
        return variables

    def _value(self, entry: Object, container: Object) -> str:
        source = entry.get("valueFrom", {})
        if "secretKeyRef" in source:
            secret = self._get("secrets", source["secretKeyRef"]["name"])
            return base64.b64decode(secret["data"][source["secretKeyRef"]["key"]]).decode()
        if "fieldRef" in source:
            assert source["fieldRef"]["fieldPath"] == "metadata.namespace"
            return self._namespace
        return self._moved(entry.get("value", ""), self._mounted(container))

    def _get(self, plural: str, name: str) -> Object:
        found: Object = self._cluster.api.get(f"{self._path(plural)}/{name}")
        return found

    def _path(self, plural: str) -> str:
        return f"/api/v1/namespaces/{self._namespace}/{plural}"
