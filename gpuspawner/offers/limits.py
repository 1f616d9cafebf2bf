"""The limits of a server, read from its pod."""

from collections.abc import Mapping
from typing import Any


def server_limits(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the limits of a pod's server, which is its first container, by resource."""
    resources = pod["spec"]["containers"][0].get("resources") or {}
    limits: Mapping[str, Any] = resources.get("limits") or {}
    return limits
