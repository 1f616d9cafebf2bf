"""A stand-in for a Prometheus that has measured nothing yet."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_EMPTY = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": []}}).encode()


class _Handler(BaseHTTPRequestHandler):
    """Answers each query."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(_EMPTY)))
        self.end_headers()
        self.wfile.write(_EMPTY)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def empty_prometheus() -> Iterator[str]:
    """Serve one, and yield its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
