"""What a trait becomes by the overrides of a profile, a choice or a group. Pure."""

from collections.abc import Mapping
from typing import Any

from gpuspawner.kube.objects import mapping


def overridden(had: Any, given: Any) -> Any:
    """Return a trait's value after an override: dictionaries are merged, and null removes a key.

    As ``KubeSpawner._apply_overrides`` and ``kubespawner.utils.recursive_update`` of 7.0.0 do it,
    but *had* isn't changed. JupyterHub does the same for groups.
    """
    if isinstance(had, dict) and isinstance(given, dict):
        return _merged(had, given)
    return given


def _merged(had: Mapping[Any, Any], given: Mapping[Any, Any]) -> dict[Any, Any]:
    merged = {**had}
    for key, value in given.items():
        if isinstance(value, dict):
            merged[key] = _merged(mapping(merged.get(key)), value)
        elif value is None:
            merged.pop(key, None)
        else:
            merged[key] = value
    return merged
