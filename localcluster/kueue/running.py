"""Starts and stops Kueue as a process."""

import base64
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from localcluster import binaries
from localcluster.client import ApiError, Client, Object, unless_gone, unless_there
from localcluster.crds import CRDs, delete_all, free, path_of
from localcluster.kueue import objects
from localcluster.ports import free_ports
from localcluster.processes import Process, undisturbed, wait_until

_WEBHOOKS = "/apis/admissionregistration.k8s.io/v1"
_SERVICES = f"/api/v1/namespaces/{objects.NAMESPACE}/services"
_SECRETS = f"/api/v1/namespaces/{objects.NAMESPACE}/secrets"
_FLAVORS = f"{objects.API}/resourceflavors"
# In the version in which they are stored, so that no webhook has to convert them.
_COLLECTIONS = [
    f"/apis/{objects.GROUP}/v1beta2/{plural}"
    for plural in (
        "workloads",
        "localqueues",
        "clusterqueues",
        "cohorts",
        "resourceflavors",
        "workloadpriorityclasses",
    )
]
_PODS = "/api/v1/pods"
_TIMEOUT = 60.0


class RunningKueue:
    """Kueue beside a control plane, from its start to its stop; its webhooks answer.

    Raises:
        LocalClusterError: Kueue couldn't be built, ended, or wasn't ready in time.
    """

    def __init__(self, directory: Path, kubeconfig: Path, api: Client) -> None:
        self._built = binaries.kueue()
        self._api = api
        self._kubeconfig = kubeconfig
        self._log = directory / "kueue.log"
        self._certificates = directory / "kueue-certificates"
        self._certificates.mkdir(exist_ok=True)
        self._settings = directory / "kueue.yaml"
        self._port, metrics, health = free_ports(3)
        self._settings.write_text(
            yaml.safe_dump(
                objects.configuration(str(self._certificates), self._port, metrics, health)
            )
        )
        found = [yaml.safe_load(path.read_text()) for path in (self._built / "crds").iterdir()]
        self._crds = CRDs(api, "Kueue", [objects.converting(it, self._port) for it in found])
        self._webhooks = [
            objects.webhooks(it, self._port)
            for it in yaml.safe_load_all((self._built / "webhooks.yaml").read_text())
        ]
        self._crds.create()
        self._create_webhooks()
        self.process = self._start()

    def stop(self) -> None:
        """End Kueue; what it wrote, its webhooks among it, stays."""
        self.process.stop(grace=0)

    def start_again(self) -> None:
        """Start Kueue again after a stop."""
        self.process = self._start()

    @contextmanager
    def without_webhooks(self) -> Iterator[None]:
        """Delete the configurations of its webhooks, until the block ends."""
        self._delete_webhooks()
        try:
            yield
        finally:
            self.stop()
            for it in self._webhooks:
                self._api.create(_collection(it), it)
            self.start_again()

    def remove_objects(self) -> None:
        """Delete the objects of Kueue's kinds, and let its pods be deleted."""
        wait_until(self._has_no_objects, [], _TIMEOUT, "Kueue's objects are gone")

    def remove_traces(self) -> None:
        """Delete everything that Kueue needed, once it has ended."""
        self._delete_webhooks()
        self.remove_objects()
        self._crds.delete()
        self._api.delete(f"{_SERVICES}/{objects.SERVICE}")
        self._api.delete(f"{_SECRETS}/{objects.SECRET}")

    def _start(self) -> Process:
        command: list[str | Path] = [self._built / "kueue", f"--config={self._settings}"]
        environment = {**os.environ, "KUBECONFIG": str(self._kubeconfig)}
        with undisturbed():
            process = Process("kueue", command, self._log, environment)
        try:
            wait_until(self._has_certificate, [process], _TIMEOUT, "Kueue has a certificate")
            wait_until(self._answers, [process], _TIMEOUT, "Kueue's webhooks answer")
        except BaseException:
            process.stop(grace=0)
            raise
        return process

    def _delete_webhooks(self) -> None:
        for it in self._webhooks:
            with unless_gone():
                self._api.delete(f"{_collection(it)}/{it['metadata']['name']}")

    def _create_webhooks(self) -> None:
        with unless_there():
            self._api.create("/api/v1/namespaces", {"metadata": {"name": objects.NAMESPACE}})
        self._api.create(_SERVICES, objects.webhook_service())
        self._api.create(_SECRETS, {"metadata": {"name": objects.SECRET}})
        for it in self._webhooks:
            self._api.create(_collection(it), it)

    def _has_certificate(self) -> bool:
        """Write the certificate that Kueue has made to the files where a kubelet would."""
        data = self._api.get(f"{_SECRETS}/{objects.SECRET}").get("data") or {}
        for name in ("tls.crt", "tls.key"):
            if name in data:
                (self._certificates / name).write_bytes(base64.b64decode(data[name]))
        return "tls.crt" in data

    def _answers(self) -> bool:
        """Whether the webhooks take a new flavor; their configurations may lack its CA yet."""
        probe = objects.resource_flavor("localcluster-probe")
        try:
            self._api.create(f"{_FLAVORS}?dryRun=All", probe)
        except ApiError as error:
            if error.status not in (404, 500):
                raise
            return False
        return True

    def _has_no_objects(self) -> bool:
        """Delete what is left, and return whether nothing was."""
        for pod in self._api.items(_PODS):
            free(self._api, path_of(_PODS, pod), pod, objects.GROUP)
        return delete_all(self._api, _COLLECTIONS, finalizers=objects.GROUP)


def _collection(webhooks: Object) -> str:
    return f"{_WEBHOOKS}/{webhooks['kind'].lower()}s"
