"""A server-side dry run of a pod's creation: all of admission, and nothing is made."""

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import quote

from gpuspawner.admission.rejection import Missing, Of, Rejection, WebhookFailed
from gpuspawner.admission.rejection_parser import message, read
from gpuspawner.cluster.client import Client, RequestError
from gpuspawner.kube.manifest import Manifest
from gpuspawner.quoting import one_line

log = logging.getLogger(__name__)

_MOST_SAID = 100

Answer = Manifest | Rejection | None
"""The pod as admission leaves it, its refusal, or None if neither is known."""


class Admission(Protocol):
    """Whoever can say what the API server's admission makes of a pod."""

    async def admit(self, namespace: str, pod: Manifest) -> Answer:
        """Return the pod as admission leaves it, or why there will be none.

        Args:
            namespace: Where the pod will be created.
            pod: As the API writes it; without a spec while it cannot be made.

        Raises:
            TooManyDryRunsError: There was no turn for it, so nothing is known.
        """


class DryRun:
    """Asks the API server what admission makes of pods. One for the whole hub.

    Admission fills in what the scheduler goes by: requests from a LimitRange, the tolerations, the
    node selector and the overhead of a RuntimeClass, a priority, whatever a webhook adds. It is
    asked under a generated name, since an old pod of the same name may still be there.

    Args:
        client: Asks the API server; not KubeSpawner's, whose connections are for pods.
        seconds: How long one pod may take.
    """

    def __init__(self, client: Client, seconds: float) -> None:
        self._client = client
        self._seconds = seconds
        self._said: set[str] = set()

    async def admit(self, namespace: str, pod: Manifest) -> Answer:
        """The pod as admission leaves it, or why there will be none.

        Args:
            namespace: Where the pod will be created.
            pod: As the API writes it; without a spec while it cannot be made.

        Returns:
            None where neither can be had, as from an API server that is away or a webhook that
            supports no dry run; the log says so once.
        """
        if not pod.get("spec"):
            return None
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"
        try:
            async with asyncio.timeout(self._seconds):
                status, answer = await self._client.post(path, {"dryRun": "All"}, _unnamed(pod))
            body = json.loads(answer)
        except (RequestError, TimeoutError, ValueError) as error:
            self._skip(f"{type(error).__name__} {error}")
            return None
        if isinstance(body, dict) and body.get("kind") == "Pod":
            return body
        rejection = read(status, body, Of.POD)
        if rejection is None or _may_pass(rejection):
            self._skip(message(body) or f"HTTP status {status}")
            return None
        return rejection

    def _skip(self, why: str) -> None:
        why = one_line(why)
        if why in self._said or len(self._said) >= _MOST_SAID:
            return
        self._said.add(why)
        log.warning(
            "No dry run could be had, so that pods are judged as they are sent, without what "
            "admission adds to them: %s",
            why,
        )


def _unnamed(pod: Manifest) -> Manifest:
    metadata = pod.get("metadata")
    if not isinstance(metadata, Mapping) or not isinstance(metadata.get("name"), str):
        return pod
    rest = {name: value for name, value in metadata.items() if name != "name"}
    return {**pod, "metadata": {**rest, "generateName": f"{metadata['name']}-"}}


def _may_pass(rejection: Rejection) -> bool:
    """Whether it may be over when the pod is created: only that says."""
    match rejection.cause:
        case Missing("Namespace"):  # KubeSpawner makes a person's own when the server starts
            return True
        case WebhookFailed():
            return True
        case _:
            return False
