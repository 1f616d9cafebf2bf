"""Admission webhooks: a server for them on this machine, and their configurations."""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from localcluster import LocalCluster

Object = dict[str, Any]
Answer = Callable[[Object], Object]
"""Returns a webhook's response to the pod under review, without the uid."""

API = "/apis/admissionregistration.k8s.io/v1"


class Webhooks:
    """A server whose paths are webhooks.

    Args:
        directory: Where it writes its certificate.

    Attributes:
        answers: The answer of each path; tests may change it at any time.
        released: An event for answers to wait for; set when the server stops.
    """

    def __init__(self, directory: Path) -> None:
        self.answers: dict[str, Answer] = {}
        self.released = threading.Event()
        self._certificate, chain = _self_signed(directory)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def configuration(self, namespace: str, path: str, kind: str = "Validating") -> Object:
        """Return a configuration that sends new pods of one namespace to a path."""
        name = f"{path}-{namespace}"
        of_namespace = {"kubernetes.io/metadata.name": namespace}
        url = f"https://127.0.0.1:{self._server.server_address[1]}/{path}"
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{kind}WebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [
                {
                    "name": f"{path}.example.com",
                    "clientConfig": {"url": url, "caBundle": self._certificate},
                    "rules": [
                        {
                            "apiGroups": [""],
                            "apiVersions": ["v1"],
                            "resources": ["pods"],
                            "operations": ["CREATE"],
                        }
                    ],
                    "namespaceSelector": {"matchLabels": of_namespace},
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                    "failurePolicy": "Fail",
                    "timeoutSeconds": 10,
                }
            ],
        }

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        answers = self.answers

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                review = json.loads(self.rfile.read(length))
                request = review["request"]
                answer = answers[self.path.partition("?")[0].strip("/")](request["object"])
                response = {"allowed": True, **answer, "uid": request["uid"]}
                body = json.dumps({**review, "request": None, "response": response}).encode()
                with suppress(OSError):  # the API server may have given up
                    self._send(body)

            def _send(self, body: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        return Handler


def patched(*operations: Object) -> Object:
    """Return an answer that changes the pod by operations of JSON Patch."""
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"patchType": "JSONPatch", "patch": patch}


@contextmanager
def configured(cluster: LocalCluster, configuration: Object) -> Iterator[None]:
    """Create this webhook configuration, and delete it when the block ends."""
    kind = configuration["kind"].removesuffix("WebhookConfiguration").lower()
    path = f"{API}/{kind}webhookconfigurations"
    cluster.api.create(path, configuration)
    try:
        yield
    finally:
        cluster.api.delete(f"{path}/{configuration['metadata']['name']}")


@contextmanager
def stored_before_v1(cluster: LocalCluster, configuration: Object) -> Iterator[None]:
    """Store a webhook with unknown side effects, as it may be left from before Kubernetes 1.22.

    The API server no longer accepts one, so this writes it into etcd.
    """
    name = configuration["metadata"]["name"]
    key = f"/registry/validatingwebhookconfigurations/{name}"
    configuration["metadata"].update(uid=name, creationTimestamp="2020-01-01T00:00:00Z")
    for webhook in configuration["webhooks"]:
        webhook.update(sideEffects="Unknown", matchPolicy="Equivalent", objectSelector={})
        webhook["rules"][0]["scope"] = "*"
    pair = {"key": _base64(key), "value": _base64(json.dumps(configuration))}
    url = f"http://127.0.0.1:{cluster.plane._etcd_port}/v3/kv/put"
    build_opener(ProxyHandler({})).open(Request(url, json.dumps(pair).encode())).close()
    try:
        yield
    finally:
        cluster.api.delete(f"{API}/validatingwebhookconfigurations/{name}")


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _self_signed(directory: Path) -> tuple[str, Path]:
    """Return a certificate for a webhook's configuration, and the file with its chain and key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "webhooks")])
    now = dt.datetime.now(dt.UTC)
    here = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([here]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    public = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    chain = directory / "webhooks.pem"
    chain.write_bytes(public + private)
    return base64.b64encode(public).decode(), chain
