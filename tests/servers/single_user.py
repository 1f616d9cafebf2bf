"""A stand-in for a user's server: it starts at once, while JupyterHub's own mock takes a second."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from urllib.parse import urlparse

COMMAND = [sys.executable, __file__]
"""Runs it as a pod's process."""


class _Handler(BaseHTTPRequestHandler):
    """Answers with the path, and with the version that the hub compares with its own.

    At `/end`, the process ends.
    """

    def do_GET(self) -> None:
        if self.path.endswith("/end"):
            os._exit(0)
        body = self.path.encode()
        self.send_response(200)
        self.send_header("X-JupyterHub-Version", version("jupyterhub"))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def serving_every_pod(port: int) -> Iterator[None]:
    """Answer at all addresses of this machine, for pods without processes.

    Such pods have addresses of 127.0.0.0/8.
    """
    server = ThreadingHTTPServer(("0.0.0.0", port), _Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


if __name__ == "__main__":
    url = urlparse(os.environ["JUPYTERHUB_SERVICE_URL"])
    ThreadingHTTPServer((url.hostname or "", url.port or 80), _Handler).serve_forever()
