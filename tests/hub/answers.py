"""A server that answers, for tests that need no more of it: JupyterHub's own mock takes a second.

It runs as a pod's process and says the version that the hub compares with its own.
"""

from __future__ import annotations

import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from urllib.parse import urlparse

COMMAND = [sys.executable, __file__]


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = self.path.encode()
        self.send_response(200)
        self.send_header("X-JupyterHub-Version", version("jupyterhub"))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    url = urlparse(os.environ["JUPYTERHUB_SERVICE_URL"])
    ThreadingHTTPServer((url.hostname or "", url.port or 80), Answers).serve_forever()
