"""A pytest plugin that runs KubeSpawner's tests on GPUSpawner: ``-p tests.stock.substituted``.

It replaces only the package's public name. KubeSpawner's own modules keep their class. Nothing
listens in the pods, which the local cluster only reports as running; KubeSpawner leaves it to the
hub to wait for that.
"""

from typing import Any

import kubespawner

import gpuspawner.spawner  # noqa: F401, which needs the name as it is
from gpuspawner import GPUSpawner
from gpuspawner.launch import run


async def _as_if_it_listened(*_: object) -> None:
    pass


kubespawner.KubeSpawner = GPUSpawner
ours: Any = run
ours.until_reachable = _as_if_it_listened
