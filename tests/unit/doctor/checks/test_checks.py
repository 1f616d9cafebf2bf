"""For whom the doctor asks."""

from __future__ import annotations

from typing import Any

from traitlets.config import Config

from gpuspawner import GPUSpawner
from gpuspawner.doctor.checks import examine
from gpuspawner.policies.owner import Owner

NAMES: list[str] = []


class Noting(GPUSpawner):
    """A class of an administrator's, which notes for whom spawners are made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        NAMES.append(self.user.name)


async def test_no_spawner_is_made_for_anybody_but_the_named_user() -> None:
    NAMES.clear()
    config = Config(
        JupyterHub={"spawner_class": Noting},
        KubeSpawner={"k8s_api_host": "http://127.0.0.1:1"},
    )

    found = await examine(config, Owner("ann"))

    assert [it.id for it in found] == ["cluster"]
    assert set(NAMES) == {"ann"}
