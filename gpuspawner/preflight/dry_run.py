"""A server-side dry run of a pod's creation: it runs all of admission, and creates nothing.

`changes` compares the pod before and after it.
"""

import asyncio
import json
import logging
from collections.abc import Mapping
from fractions import Fraction
from typing import Protocol
from urllib.parse import quote

from gpuspawner.cluster.client import Client, RequestError
from gpuspawner.compat.kubespawner import NO_RIGHT
from gpuspawner.kube.objects import Manifest, mapping
from gpuspawner.kube.quantity import QuantityError, parse_quantity
from gpuspawner.kube.quoting import one_line
from gpuspawner.preflight.rejection import Missing, Of, Rejection, WebhookFailed
from gpuspawner.preflight.rejection_parser import message, read

log = logging.getLogger(__name__)

_MOST_SAID = 100

# DefaultTolerationSeconds adds these to every pod; they let it stay on a node, not be placed there.
_OF_EVERY_POD = {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}
_AS_WRITTEN = ("nodeSelector", "affinity", "overhead", "priorityClassName", "runtimeClassName")

Answer = Manifest | Rejection | None
"""The pod as admission leaves it, its rejection, or None if neither is known."""


class Admission(Protocol):
    """Runs a pod through the API server's admission."""

    async def admit(self, namespace: str, pod: Manifest) -> Answer:
        """Return the pod as admission leaves it, or why admission rejects it.

        `pod` has no spec if it can't be made yet.

        Raises:
            TooManyDryRunsError: No dry run was possible in time, so nothing is known.
        """


class DryRun:
    """Asks the API server how admission changes pods. One for the whole hub.

    Admission fills in fields that the scheduler uses: requests from a LimitRange, the tolerations,
    node selector and overhead of a RuntimeClass, a priority, and anything that a webhook adds. The
    dry run uses a generated name, since an old pod of the same name may still exist.

    Args:
        client: Sends the requests; not KubeSpawner's, whose connections are for real pods.
        seconds: How long one dry run may take.
    """

    def __init__(self, client: Client, seconds: float) -> None:
        self._client = client
        self._seconds = seconds
        self.sent = 0
        self._said: set[str] = set()

    async def admit(self, namespace: str, pod: Manifest) -> Answer:
        """As `Admission.admit`; None if the dry run fails. The log gives each reason once.

        The API server doesn't answer, say, or a webhook doesn't support dry runs.
        """
        if not pod.get("spec"):
            return None
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"
        self.sent += 1
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
            "A dry run failed, so the hub checks pods for room as it sends them, without what "
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
    """Whether the cause may be gone by the time the pod is created."""
    match rejection.cause:
        # KubeSpawner may create a user's own namespace when the server starts.
        case Missing("Namespace") | WebhookFailed():
            return True
        case _:  # an API server that has just started knows no roles
            return NO_RIGHT in rejection.text


def changes(sent: object, admitted: object) -> bool:
    """Whether two pods, as the API writes them, differ in a field that the scheduler uses."""
    try:
        return _deciding(sent) != _deciding(admitted)
    except QuantityError:
        return True


def added_tolerations(sent: object, admitted: object) -> tuple[Manifest, ...]:
    """Return the tolerations that admission has added to a pod; not those that every pod gets."""
    had = _tolerations(sent)
    return tuple(dict(its) for its in _tolerations(admitted) if its not in had)


def _tolerations(pod: object) -> list[Mapping[str, object]]:
    tolerations = _list(mapping(mapping(pod).get("spec")), "tolerations")
    return [its for its in tolerations if not _is_of_every_pod(its)]


def _deciding(pod: object) -> tuple[object, ...]:
    spec = mapping(mapping(pod).get("spec"))
    return (
        [spec.get(name) or None for name in _AS_WRITTEN],
        spec.get("schedulerName") or "default-scheduler",
        spec.get("topologySpreadConstraints") or [],
        _tolerations(pod),
        [_requests(container) for container in _list(spec, "initContainers")],
        [_requests(container) for container in _list(spec, "containers")],
    )


def _is_of_every_pod(toleration: Mapping[str, object]) -> bool:
    return toleration.get("effect") == "NoExecute" and toleration.get("key") in _OF_EVERY_POD


def _requests(container: Mapping[str, object]) -> dict[str, Fraction]:
    """Return what the container requests; a limit without a request counts as one."""
    resources = mapping(container.get("resources"))
    stated = {**mapping(resources.get("limits")), **mapping(resources.get("requests"))}
    return {str(name): parse_quantity(str(quantity)) for name, quantity in stated.items()}


def _list(spec: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    items = spec.get(name)
    return [mapping(item) for item in items] if isinstance(items, list) else []
