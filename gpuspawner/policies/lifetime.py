"""Writes into a pod by which policies its owner got it, and when it ends."""

from collections.abc import Mapping
from typing import Any

from gpuspawner.kube.servers import GRANT
from gpuspawner.policies.granted import Granted

LIFETIME = "GPUSPAWNER_LIFETIME_SECONDS"
"""A server's environment variable: how long it may run, in seconds."""


def mark(pod: Mapping[str, Any], granted: Granted) -> dict[str, Any]:
    """Return a pod that says what was granted, and that Kubernetes ends after its lifetime.

    The time counts from the moment when the node begins to start the pod, so waiting for a node
    costs nothing (Kubernetes documentation, Pod API, ``activeDeadlineSeconds``). A shorter deadline
    of the administrator's stays.
    """
    metadata, spec = pod.get("metadata") or {}, pod["spec"]
    annotations = {**(metadata.get("annotations") or {}), GRANT: granted.written()}
    made = {**pod, "metadata": {**metadata, "annotations": annotations}}
    if granted.lifetime is None:
        return made
    deadline = min(spec.get("activeDeadlineSeconds") or granted.lifetime, granted.lifetime)
    first, *others = spec["containers"]
    kept = [entry for entry in first.get("env") or () if entry["name"] != LIFETIME]
    server = {**first, "env": [*kept, {"name": LIFETIME, "value": str(deadline)}]}
    ends = {"containers": [server, *others], "activeDeadlineSeconds": deadline}
    return {**made, "spec": {**spec, **ends}}
