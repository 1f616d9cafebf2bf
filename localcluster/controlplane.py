"""etcd, kube-apiserver, kube-scheduler and kube-controller-manager as processes."""

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from localcluster import kubeconfig
from localcluster.client import Client
from localcluster.errors import LocalClusterError
from localcluster.etcd import Gateway
from localcluster.ports import free_ports
from localcluster.processes import Process, undisturbed, wait_until

#: The controllers for quota, node health, namespaces, volumes and owned objects.
CONTROLLERS = (
    "garbage-collector-controller",
    "namespace-controller",
    "node-lifecycle-controller",
    "persistentvolume-binder-controller",
    "pod-garbage-collector-controller",
    "resourcequota-controller",
    "serviceaccount-controller",
    "taint-eviction-controller",
)

#: Extra flags, by the name of the program.
Flags = Mapping[str, Sequence[str]]

# A loaded machine takes many times the usual 3 s, and 150,000 pods in etcd take minutes to read.
_START_TIMEOUT = 600.0
_GRACE = 10.0
_PORT_TAKEN = "address already in use"


class ControlPlane:
    """One control plane, its data and logs in one directory.

    Args:
        binary: the program of `localcluster.binaries.controlplane`.
        directory: an empty directory of its own.
        controllers: controllers to run; with none, no controller manager starts.
        flags: more flags, by the name of the program.
    """

    def __init__(
        self,
        binary: Path,
        directory: Path,
        *,
        controllers: Sequence[str] = CONTROLLERS,
        flags: Flags | None = None,
    ) -> None:
        self.binary = binary
        self._directory = directory
        self._controllers = tuple(controllers)
        self._flags = dict(flags or {})
        self._etcd: Process | None = None
        self._apiserver: Process | None = None
        self._others: list[Process] = []
        self._api_port, self._etcd_port, self._peer_port = 0, 0, 0
        self.token = secrets.token_hex(16)
        self.ca = directory / "certs" / "apiserver.crt"
        self.kubeconfig = directory / "kubeconfig"

    @property
    def url(self) -> str:
        """The API server's address."""
        return f"https://127.0.0.1:{self._api_port}"

    @property
    def etcd_url(self) -> str:
        """The address of its etcd, which has a JSON gateway below ``/v3``."""
        return f"http://127.0.0.1:{self._etcd_port}"

    def client(self) -> Client:
        """Return a client with every right."""
        return Client(self.url, self.ca, self.token)

    def processes(self) -> list[Process]:
        """Return the processes in the order in which to stop them."""
        servers = [process for process in (self._apiserver, self._etcd) if process]
        return [*reversed(self._others), *servers]

    def start(self) -> None:
        """Start everything and return when the API server is ready.

        Raises:
            LocalClusterError: a program ended or did not become ready in time.
        """
        self._write_credentials()
        for attempt in range(3):
            try:
                self._start_servers()
                break
            except LocalClusterError as error:
                self.stop()
                # Another process took a port between our choice and our use of it.
                if _PORT_TAKEN not in str(error) or attempt == 2:
                    raise
        kubeconfig.write(self.kubeconfig, url=self.url, ca=self.ca, token=self.token)
        self._start_others()

    def stop(self) -> None:
        """End every process, clients of the API server first, etcd last.

        If etcd has ended already, the API server would wait for it, so it is killed.
        """
        for process in self.processes():
            is_asked = process is self._etcd or not self._etcd or self._etcd.is_alive()
            process.stop(_GRACE if is_asked else 0)
        self._others, self._apiserver, self._etcd = [], None, None

    def restart_apiserver(self, flags: Sequence[str] | None = None) -> None:
        """Restart the API server on its port, with other extra flags if given."""
        if flags is not None:
            self._flags["kube-apiserver"] = tuple(flags)
        self.stop_apiserver()
        self.start_apiserver()

    def compact(self) -> None:
        """Make etcd forget all history up to now.

        Raises:
            LocalClusterError: etcd refused.
        """
        etcd = Gateway(self.etcd_url)
        etcd.ask("kv/compaction", {"revision": etcd.revision(), "physical": True})

    def stop_apiserver(self) -> None:
        """Stop only the API server, as for an outage.

        It is killed: on SIGTERM it would wait long for the watches of its clients.
        """
        if self._apiserver:
            self._apiserver.stop(grace=0)
            self._apiserver = None

    def start_apiserver(self) -> None:
        """Start the API server again after `stop_apiserver`.

        Start scheduler and controllers again too: they would retry only after up to 30 s.
        """
        for process in self._others:
            process.stop(grace=0)
        self._start_apiserver()
        self._start_others()

    def _start_apiserver(self) -> None:
        flags = (
            f"--etcd-servers={self.etcd_url}",
            f"--secure-port={self._api_port}",
            "--bind-address=127.0.0.1",
            f"--cert-dir={self.ca.parent}",
            f"--service-account-key-file={self._signing_key}",
            f"--service-account-signing-key-file={self._signing_key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--token-auth-file={self._directory / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--allow-privileged",
            # Pods here get no token, so they need no account made by a controller.
            "--disable-admission-plugins=ServiceAccount",
        )
        with undisturbed():
            self._apiserver = self._run("kube-apiserver", *flags)
        watched = [process for process in (self._etcd, self._apiserver) if process]
        wait_until(self.client().is_ready, watched, _START_TIMEOUT, "kube-apiserver is ready")

    def _start_servers(self) -> None:
        self._api_port, self._etcd_port, self._peer_port = free_ports(3)
        here, peer = self.etcd_url, f"http://127.0.0.1:{self._peer_port}"
        flags = (
            f"--data-dir={self._directory / 'etcd'}",
            f"--listen-client-urls={here}",
            f"--advertise-client-urls={here}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--log-level=warn",
            # The data is thrown away with the cluster.
            "--unsafe-no-fsync",
        )
        with undisturbed():
            self._etcd = self._run("etcd", *flags)
        self._start_apiserver()

    def _start_others(self) -> None:
        self._others = []
        with undisturbed():
            self._others.append(self._start_scheduler())
            if self._controllers:
                self._others.append(self._start_controller_manager())

    def _start_scheduler(self) -> Process:
        return self._run(
            "kube-scheduler",
            f"--kubeconfig={self.kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
        )

    def _start_controller_manager(self) -> Process:
        return self._run(
            "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
            f"--controllers={','.join(self._controllers)}",
        )

    def _run(self, program: str, *flags: str) -> Process:
        command: list[str | Path] = [self.binary, program, *flags, *self._flags.get(program, ())]
        return Process(program, command, self._directory / f"{program}.log")

    @property
    def _signing_key(self) -> Path:
        return self._directory / "service-accounts.key"

    def _write_credentials(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        pem = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
        self._signing_key.touch(mode=0o600)
        self._signing_key.write_bytes(pem)
        tokens = self._directory / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(f'{self.token},admin,admin,"system:masters"\n')
