"""Traits as a class of an administrator's leaves them: it may name and hide them as it likes.

Read in ``traitlets/traitlets.py`` of 5.16.
"""

from typing import Any


def default_of(kubespawner: Any, spawner: Any, trait: str) -> Any:
    """Return a trait's default without gpuspawner's: KubeSpawner's, or that of a class of others.

    Such a class may name the function as it likes, as DockerSpawner does, and then calls that of
    KubeSpawner by its name. *kubespawner* is as in `gpuspawner.compat.kubespawner.Stock`.
    """
    name = f"_{trait}_default"
    if (method := getattr(kubespawner, name, None)) is not None:
        vars(spawner)[name] = method
    try:
        return kubespawner._all_trait_default_generators[trait](spawner)
    finally:
        vars(spawner).pop(name, None)
