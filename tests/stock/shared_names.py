"""As `tests.stock.substituted`, on a class whose own attributes have the names of our traits."""

from typing import Any

import kubespawner
from kubespawner import KubeSpawner

from gpuspawner import GPUSpawner
from gpuspawner.spawner import in_front_of

NAMES = (*GPUSpawner.class_own_traits(config=True), "gates", "stock", "copied", "attempt")


class SharingSpawner(KubeSpawner):  # type: ignore[misc]
    """Sets them when it is made, and when it starts."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._share("made")

    def start(self) -> Any:
        self._share("started")
        return super().start()

    def _share(self, value: str) -> None:
        for name in NAMES:
            setattr(self, name, {value})


sharing: Any = in_front_of(SharingSpawner)

import tests.stock.substituted  # noqa: E402, F401, before it replaces the name

kubespawner.KubeSpawner = sharing
