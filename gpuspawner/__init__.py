"""GPUSpawner: a KubeSpawner that asks the cluster before it promises a GPU.

``gpuspawner.GPUSpawner`` is the spawner; ``gpuspawner.configure`` sets it up with one line of a
JupyterHub configuration. Both are imported on first use, because JupyterHub imports this package
for every ``--help-all``, and :mod:`gpuspawner.scheduling` also serves programs without a hub.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpuspawner.configuration import configure
    from gpuspawner.spawner import GPUSpawner

__version__ = "0.1.0.dev0"
__all__ = ["GPUSpawner", "__version__", "configure"]


def __getattr__(name: str) -> Any:
    if name not in ("GPUSpawner", "configure"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gpuspawner.compat import required_names

    required_names.check()  # before modules that an old JupyterHub or KubeSpawner can't import
    if name == "GPUSpawner":
        from gpuspawner.spawner import GPUSpawner

        return GPUSpawner
    from gpuspawner.configuration import configure

    return configure
