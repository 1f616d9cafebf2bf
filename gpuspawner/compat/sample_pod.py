"""A pod as KubeSpawner makes them for all servers, without what it makes for each user."""

from collections.abc import Mapping
from typing import Any

from kubespawner.objects import make_pod

from gpuspawner.compat.kubespawner import as_list
from gpuspawner.compat.overrides import overridden

_AS_WRITTEN = [
    "image", "image_pull_policy", "image_pull_secrets", "node_selector", "uid", "gid", "fs_gid",
    "supplemental_gids", "privileged", "allow_privilege_escalation", "container_security_context",
    "pod_security_context", "working_dir", "cpu_limit", "cpu_guarantee", "mem_limit",
    "mem_guarantee", "extra_resource_limits", "extra_resource_guarantees", "service_account",
    "automount_service_account_token", "extra_container_config", "extra_pod_config",
    "scheduler_name", "priority_class_name",
]  # fmt: skip
_TERMS = (
    "tolerations", "node_affinity_preferred", "node_affinity_required", "pod_affinity_preferred",
    "pod_affinity_required", "pod_anti_affinity_preferred", "pod_anti_affinity_required",
)  # fmt: skip
LISTS = frozenset({*_TERMS, "volumes", "volume_mounts", "init_containers", "extra_containers"})
"""Traits for lists of dictionaries; a dictionary of dictionaries means the list of its values."""

_PORT = 8888
"""KubeSpawner's, which it sets on each spawner."""


def make(settings: Any, override: Mapping[str, Any]) -> Any:
    """Make a pod from KubeSpawner's traits, with the *override* of a profile.

    Functions are left out, because they need a user; so are volumes, environment and hooks.
    """
    given = {name: getattr(settings, name) for name in (*_AS_WRITTEN, *_TERMS)}
    given |= {it: overridden(had, override[it]) for it, had in given.items() if it in override}
    given = {name: None if callable(value) else value for name, value in given.items()}
    given |= {name: list(as_list(given[name]) or ()) for name in _TERMS}
    component = settings.component_label
    labels = {"app.kubernetes.io/component": component, "component": component}
    labels = {**settings.extra_labels, **settings.common_labels, **labels}
    port = settings.port or _PORT
    return make_pod(name="gpuspawner", cmd=None, port=port, labels=labels, **given)
