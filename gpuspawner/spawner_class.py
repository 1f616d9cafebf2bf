"""Puts GPUSpawner in front of the class that the administrator already uses.

Many hubs derive their own class from KubeSpawner. A child of GPUSpawner and of this class, in that
order, runs GPUSpawner's gates first, and then the administrator's methods in the place of those of
KubeSpawner. So no method of theirs can skip a gate, and their ``super()`` is KubeSpawner as before.
"""

from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from types import new_class
from typing import Any

from kubespawner import KubeSpawner
from traitlets.config.loader import LazyConfigValue
from traitlets.log import get_logger
from traitlets.utils.importstring import import_item

from gpuspawner.compat.code import mentions, names_used, where
from gpuspawner.compat.kubespawner import LEADING_TO_THE_POD
from gpuspawner.kube.quoting import listing
from gpuspawner.spawner import GPUSpawner

_OURS = frozenset(dir(GPUSpawner)) - frozenset(dir(KubeSpawner))
"""The names that only GPUSpawner has; another meaning of one of them would break a gate."""


class SpawnerClassError(ValueError):
    """GPUSpawner can't stand in front of this class."""


def in_front_of(given: object) -> type[GPUSpawner]:
    """Return the spawner class for a ``JupyterHub.spawner_class`` that an administrator has set.

    Raises:
        SpawnerClassError: It isn't a KubeSpawner, or can't have gates; says which line to change.
    """
    found: Any = _imported(given)
    if not (isinstance(found, type) and issubclass(found, KubeSpawner)):
        raise SpawnerClassError(
            f"JupyterHub.spawner_class is {given!r}, which isn't a KubeSpawner; "
            "remove that line, or derive the class from kubespawner.KubeSpawner"
        )
    if issubclass(found, GPUSpawner):
        return found
    return GPUSpawner if found is KubeSpawner else _child(found)  # type: ignore[arg-type]


def _imported(given: object) -> object:
    if isinstance(given, LazyConfigValue):
        return GPUSpawner
    if not isinstance(given, str):
        return given
    if given.lower() in {"gpuspawner", "kubespawner"}:
        return GPUSpawner
    registered = {it.name.lower(): it for it in entry_points(group="jupyterhub.spawners")}
    try:
        if given.lower() in registered:
            return registered[given.lower()].load()
        return import_item(given)
    except ImportError as error:
        raise SpawnerClassError(
            f"JupyterHub.spawner_class is {given!r}, which can't be imported ({error}); "
            "correct that line, or install what it needs"
        ) from error


@cache
def _child(theirs: type[Any]) -> type[GPUSpawner]:
    """Derive a class that has the same name, so that its sections of the configuration stay."""
    _check(theirs)
    body = {
        "__module__": theirs.__module__,
        "__doc__": theirs.__doc__,
        "gpuspawner_has_own_options": any(
            mentions(it, "user_options") for it in _own_classes(theirs)
        ),
    }
    try:
        child = new_class(theirs.__name__, (GPUSpawner, theirs), {}, lambda it: it.update(body))
    except TypeError as error:
        raise SpawnerClassError(
            f"JupyterHub.spawner_class: {theirs.__name__} can't be combined with GPUSpawner "
            f"({error}); derive it from gpuspawner.GPUSpawner instead of KubeSpawner"
        ) from error
    get_logger().info(
        "GPUSpawner checks each start before %s, which keeps its own methods", theirs.__name__
    )
    return child


def _check(theirs: type[Any]) -> None:
    for cls in _own_classes(theirs):
        for method, leads_on in LEADING_TO_THE_POD.items():
            code = vars(cls).get(method)
            if callable(code) and not _names_reached(theirs, code) & leads_on:
                raise SpawnerClassError(
                    f"JupyterHub.spawner_class: {cls.__name__}.{method} ({where(code)}) never "
                    f"calls super().{method}(), so GPUSpawner couldn't check the pod that it "
                    "starts; add that call"
                )
        if taken := sorted(_OURS & vars(cls).keys()):
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
        left += [vars(cls)[it] for cls in _own_classes(theirs) for it in used & vars(cls).keys()]
    return found


def _own_classes(theirs: type[Any]) -> Iterator[type[Any]]:
    """Yield the class and its bases that KubeSpawner doesn't have."""
    yield from (cls for cls in theirs.__mro__ if cls not in KubeSpawner.__mro__)
