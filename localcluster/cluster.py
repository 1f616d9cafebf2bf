"""A whole local cluster: a control plane, simulated nodes and the agent that keeps them Ready."""

import os
import shlex
import shutil
import subprocess
import types
from collections.abc import Iterable, Sequence
from enum import Enum
from pathlib import Path
from typing import Self

from localcluster import autoscalers, binaries, kubeconfig
from localcluster.client import ApiError, Client, Object, unless_gone
from localcluster.controlplane import CONTROLLERS, ControlPlane, Flags
from localcluster.directory import take
from localcluster.errors import LocalClusterError
from localcluster.fleet import Fleet, load
from localcluster.kueue.running import RunningKueue
from localcluster.nodes import NOT_READY_TAINT, node_objects
from localcluster.processes import Process, module_process, undisturbed, wait_until

_NODES = "/api/v1/nodes"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_READY_TIMEOUT = 120.0


class Pods(Enum):
    """What the agent does with pods that are bound to the cluster's nodes."""

    RUN = "their containers run as local processes"
    REPORT = "they are reported Running, and no process starts"
    LEAVE = "they stay as the scheduler left them, for there is no agent"


class LocalCluster:
    """A Kubernetes cluster on this machine, which runs while the context is open.

    Start it from a thread that stays alive. Everything ends with this process.

    Args:
        directory: for its files. If an earlier cluster left files in it, they are deleted first.
        fleet: the nodes to begin with: a `Fleet`, a shipped fleet's name, or a file.
        pods: what the agent does with bound pods.
        controllers: controllers to run; with none, no controller manager starts.
        flags: more flags, by program: ``{"kube-apiserver": ["--v=4"]}``.
    """

    def __init__(
        self,
        directory: str | Path,
        *,
        fleet: Fleet | str | Path | None = None,
        pods: Pods = Pods.REPORT,
        controllers: Sequence[str] = CONTROLLERS,
        flags: Flags | None = None,
    ) -> None:
        self.directory = Path(directory).absolute()
        self._fleet = fleet if isinstance(fleet, Fleet) else load(fleet) if fleet else Fleet()
        self._pods = pods
        self._controllers = controllers
        self._flags = flags
        self._lock: int | None = None
        self._plane: ControlPlane | None = None
        self._agent: Process | None = None
        self._autoscaler: autoscalers.RunningAutoscaler | None = None
        self._kueue: RunningKueue | None = None
        self._client: Client | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start everything and return when every node is Ready.

        Raises:
            LocalClusterError: the directory is in use or holds other files, or a program
                ended or did not become ready in time.
        """
        binary = binaries.controlplane()
        self._lock = take(self.directory)
        try:
            self._plane = ControlPlane(
                binary, self.directory, controllers=self._controllers, flags=self._flags
            )
            self._plane.start()
            self._client = self._plane.client()
            self._write_kubectl()
            if self._pods is not Pods.LEAVE:
                with undisturbed():
                    self._agent = self._start_agent()
            self.add_nodes(self._fleet)
            if self._fleet.autoscaler:
                self.start_autoscaler(self._fleet)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End every process, in order and in bounded time, and unlock the directory."""
        if self._kueue:
            self._kueue.stop()
            self._kueue = None
        if self._autoscaler:
            self._autoscaler.stop()
            self._autoscaler = None
        if self._agent:
            self._agent.stop()
            self._agent = None
        if self._plane:
            self._plane.stop()
            self._plane = None
        if self._lock is not None:
            # etcd preallocates 125 MB for a log that nobody will read.
            shutil.rmtree(self.directory / "etcd", ignore_errors=True)
            os.close(self._lock)
            self._lock = None

    def check(self) -> None:
        """Raise a `LocalClusterError` if one of the cluster's processes has ended."""
        for process in self._processes():
            process.check()

    @property
    def plane(self) -> ControlPlane:
        """The control plane, while the cluster runs."""
        if not self._plane:
            raise LocalClusterError("the cluster does not run")
        return self._plane

    @property
    def api(self) -> Client:
        """A client with every right. Only one thread at a time may use it."""
        if not self._client:
            raise LocalClusterError("the cluster does not run")
        return self._client

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.plane.kubeconfig

    @property
    def url(self) -> str:
        """The API server's address."""
        return self.plane.url

    @property
    def ca(self) -> Path:
        """The file with the certificate of the API server's CA."""
        return self.plane.ca

    @property
    def token(self) -> str:
        """The administrator's bearer token."""
        return self.plane.token

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl as administrator and return what it prints.

        Raises:
            LocalClusterError: kubectl failed; the text is its output.
        """
        done = subprocess.run(
            [self.plane.binary, "kubectl", "--kubeconfig", self.kubeconfig, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise LocalClusterError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def service_account_kubeconfig(self, namespace: str, name: str = "hub") -> Path:
        """Return a kubeconfig whose user is exactly this service account.

        It creates the account if it doesn't exist. The account has only the rights that roles
        give it. The token lasts a day, or until the account is deleted (the API server may
        accept it for 10 s longer).
        """
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        try:
            self.api.create(accounts, {"metadata": {"name": name}})
        except ApiError as error:
            if error.status != 409:
                raise
        request = {"spec": {"expirationSeconds": 24 * 3600}}
        answer = self.api.create(f"{accounts}/{name}/token", request)
        return kubeconfig.write(
            self.directory / f"kubeconfig-{namespace}-{name}",
            url=self.url,
            ca=self.ca,
            token=answer["status"]["token"],
            namespace=namespace,
        )

    def add_nodes(self, fleet: Fleet | str | Path) -> list[str]:
        """Add a fleet's nodes, wait until all accept pods, and return their names."""
        wanted = fleet if isinstance(fleet, Fleet) else load(fleet)
        for node in node_objects(wanted):
            created = self.api.create(_NODES, node)
            if not self._agent:
                self._remove_not_ready_taint(created)
        names = list(wanted.node_names())
        wait_until(
            lambda: self._are_ready(names),
            self._processes(),
            _READY_TIMEOUT,
            f"{len(names)} nodes are Ready",
        )
        return names

    def remove_nodes(self, names: Iterable[str]) -> None:
        """Remove nodes and the pods on them immediately."""
        for name in names:
            for pod in self.api.items(f"/api/v1/pods?fieldSelector=spec.nodeName={name}"):
                with unless_gone():
                    self.api.delete(_path(pod), grace=0)
            with unless_gone():
                self.api.delete(f"{_NODES}/{name}")

    def start_autoscaler(self, fleet: Fleet) -> None:
        """Start a fleet's autoscaler; it doesn't add the fleet's nodes.

        Raises:
            LocalClusterError: the fleet has none, or another one runs.
        """
        if self._autoscaler:
            raise LocalClusterError("an autoscaler runs already")
        self._autoscaler = autoscalers.run(fleet, self.directory, self.kubeconfig, self.api)

    def stop_autoscaler(self) -> None:
        """End the autoscaler and delete what it wrote."""
        if running := self._autoscaler:
            self._autoscaler = None
            running.stop()
            running.remove_traces()

    def kueue(self) -> RunningKueue:
        """Return the cluster's Kueue, which starts if it hasn't yet.

        It queues the pods of namespaces labelled ``kueue-managed=true``.

        Raises:
            LocalClusterError: it can't be built or started.
        """
        if self._kueue is None:
            self._kueue = RunningKueue(self.directory, self.kubeconfig, self.api)
        return self._kueue

    def stop_kueue(self) -> None:
        """End Kueue and delete what it wrote."""
        if running := self._kueue:
            self._kueue = None
            running.stop()
            running.remove_traces()

    def restart_apiserver(self, flags: Sequence[str] | None = None) -> None:
        """Restart the API server on its port, with other extra flags if given."""
        self.plane.restart_apiserver(flags)

    def _processes(self) -> list[Process]:
        scaling = [self._autoscaler.process] if self._autoscaler else []
        return [*scaling, *([self._agent] if self._agent else []), *self.plane.processes()]

    def _remove_not_ready_taint(self, node: Object) -> None:
        taints = [t for t in node["spec"].get("taints", []) if t["key"] != NOT_READY_TAINT]
        self.api.patch(f"{_NODES}/{node['metadata']['name']}", {"spec": {"taints": taints}})

    def _are_ready(self, names: list[str]) -> bool:
        """Return whether the nodes exist, are Ready, untainted and kept by the agent."""
        if not names:
            return True
        nodes = {node["metadata"]["name"]: node for node in self.api.items(_NODES)}
        leases = {lease["metadata"]["name"] for lease in self.api.items(_LEASES)}
        kept = leases if self._agent else nodes.keys()
        return all(name in kept and name in nodes and _is_ready(nodes[name]) for name in names)

    def _write_kubectl(self) -> None:
        """Write a kubectl for users that needs no further settings."""
        words = [str(self.plane.binary), "kubectl", "--kubeconfig", str(self.kubeconfig)]
        script = self.directory / "kubectl"
        script.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        script.chmod(0o755)

    def _start_agent(self) -> Process:
        arguments: list[str | Path] = ["--kubeconfig", self.kubeconfig, "--dir", self.directory]
        if self._pods is Pods.REPORT:
            arguments.append("--report-only")
        return module_process("localcluster.agent", arguments, self.directory / "agent.log")


def _is_ready(node: Object) -> bool:
    taints = node["spec"].get("taints", [])
    conditions = {c["type"]: c["status"] for c in node["status"].get("conditions", [])}
    return conditions.get("Ready") == "True" and all(t["key"] != NOT_READY_TAINT for t in taints)


def _path(pod: Object) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
