"""A client of etcd's JSON gateway, for what the API server doesn't offer."""

import base64
import http.client
import json
from urllib.parse import urlsplit

from localcluster.client import Object
from localcluster.errors import LocalClusterError

_TIMEOUT = 60.0


class Gateway:
    """A client of one etcd. Only one thread at a time may use it.

    Args:
        url: such as ``http://127.0.0.1:21002``.
    """

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=_TIMEOUT)

    def ask(self, path: str, request: Object) -> Object:
        """POST a request below ``/v3`` and return the answer.

        Raises:
            LocalClusterError: etcd refused it.
        """
        self._connection.request("POST", f"/v3/{path}", json.dumps(request))
        response = self._connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise LocalClusterError(f"etcd answered {response.status}: {body[:300]!r}")
        answer: Object = json.loads(body)
        return answer

    def revision(self) -> str:
        """Return the revision of the last change."""
        answer = self.ask("kv/range", {"key": encoded("/registry/"), "limit": "1"})
        return str(answer["header"]["revision"])

    def close(self) -> None:
        """Close the connection; a later request opens it again."""
        self._connection.close()


def encoded(text: str) -> str:
    """Return a key or a value in base64, as the gateway expects it."""
    return base64.b64encode(text.encode()).decode()
