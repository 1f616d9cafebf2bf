"""etcd by its JSON gateway, for what no API server does."""

import base64
import http.client
import json
from urllib.parse import urlsplit

from localcluster.client import Object
from localcluster.errors import LocalClusterError

_TIMEOUT = 60.0


class Gateway:
    """Speaks to one etcd. Not for two threads at once.

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
        """Return the number of the last change."""
        answer = self.ask("kv/range", {"key": encoded("/registry/"), "limit": "1"})
        return str(answer["header"]["revision"])

    def close(self) -> None:
        """Close the connection; a later request opens it anew."""
        self._connection.close()


def encoded(text: str) -> str:
    """Return a key or a value as the gateway wants it."""
    return base64.b64encode(text.encode()).decode()
