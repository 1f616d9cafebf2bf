"""The administrator's own spawner class, and whether it leads to the pod by way of our gates."""

from collections.abc import Iterator, Set
from importlib.metadata import entry_points
from typing import Any

from kubespawner import KubeSpawner
from traitlets.utils.importstring import import_item

from gpuspawner.compat.code import names_used, where
from gpuspawner.kube.quoting import listing

_LEADING_TO_THE_POD = {
    "start": {"start", "_start", "_make_create_pod_request"},
    "_start": {"_start", "_make_create_pod_request"},
}
"""The methods that have to lead to the pod's creation, and what they can call to get there."""


class SpawnerClassError(ValueError):
    """GPUSpawner can't stand in front of this class."""


def imported(given: object) -> type[Any]:
    """Return the class that ``JupyterHub.spawner_class`` is, or names.

    Raises:
        SpawnerClassError: It can't be imported, or isn't a KubeSpawner.
    """
    found = _named(given) if isinstance(given, str) else given
    if isinstance(found, type) and issubclass(found, KubeSpawner):
        return found
    raise SpawnerClassError(
        f"JupyterHub.spawner_class is {given!r}, which isn't a KubeSpawner; "
        "remove that line, or derive the class from kubespawner.KubeSpawner"
    )


def _named(name: str) -> object:
    registered = {it.name.lower(): it for it in entry_points(group="jupyterhub.spawners")}
    try:
        if name.lower() in registered:
            return registered[name.lower()].load()
        return import_item(name)
    except ImportError as error:
        raise SpawnerClassError(
            f"JupyterHub.spawner_class is {name!r}, which can't be imported ({error}); "
            "correct that line, or install what it needs"
        ) from error


def check(theirs: type[Any], ours: Set[str]) -> None:
    """Check that a class's own methods lead to the pod by way of *ours*, and don't replace them.

    Raises:
        SpawnerClassError: They don't, or do.
    """
    for cls in own_classes(theirs):
        for method, leads_on in _LEADING_TO_THE_POD.items():
            code = vars(cls).get(method)
            if callable(code) and not _names_reached(theirs, code) & leads_on:
                raise SpawnerClassError(
                    f"JupyterHub.spawner_class: {cls.__name__}.{method} ({where(code)}) never "
                    f"calls super().{method}(), so GPUSpawner couldn't check the pod that it "
                    "starts; add that call"
                )
        if taken := sorted(ours & vars(cls).keys()):
            raise SpawnerClassError(
                f"JupyterHub.spawner_class: {cls.__name__} has its own {listing(taken)}, "
                "which GPUSpawner uses too; rename it in that class"
            )


def _names_reached(theirs: type[Any], method: object) -> set[str]:
    """Return the names that a method uses, and those that a class's own methods use for it."""
    found: set[str] = set()
    left = [method]
    while left:
        used = names_used(left.pop()) - found
        found |= used
        left += [vars(cls)[it] for cls in own_classes(theirs) for it in used & vars(cls).keys()]
    return found


def own_classes(theirs: type[Any]) -> Iterator[type[Any]]:
    """Yield the class and its bases that KubeSpawner doesn't have."""
    yield from (cls for cls in theirs.__mro__ if cls not in KubeSpawner.__mro__)
