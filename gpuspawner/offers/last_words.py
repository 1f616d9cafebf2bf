"""Lets a container that crashes leave the end of its log, which the hub may read in its status.

The hub's role in Zero-to-JupyterHub 4.4 doesn't let it read logs.
"""

from collections.abc import Mapping
from typing import Any

_POLICY = "terminationMessagePolicy"
_KINDS = ("initContainers", "containers")


def with_last_words(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pod whose containers end with their log's last lines as their message.

    That is so only if they end with an error and write no message of their own (Kubernetes
    documentation, Pod API, ``terminationMessagePolicy``). What the administrator has set stays.
    """
    spec = dict(pod["spec"])
    for kind in _KINDS:
        if spec.get(kind):
            spec[kind] = [{_POLICY: "FallbackToLogsOnError", **it} for it in spec[kind]]
    return {**pod, "spec": spec}
