"""Real spawners of a hub that isn't there, before a cluster that a test sets."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kubespawner import KubeSpawner
from traitlets.config import Config

from gpuspawner import GPUSpawner, runtime
from gpuspawner.admission.dry_run import Answer, DryRun
from gpuspawner.admission.dry_runs import DryRuns
from gpuspawner.availability import Surveys
from gpuspawner.cluster.client import Client
from gpuspawner.kube.manifest import Manifest
from gpuspawner.preflight.admitted import AdmittedPreflight
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.runtime import Runtime, Settings
from tests.unit.preflight.worlds import StillView

A100 = {"display_name": "A100", "node_selector": {"gpu": "a100"}, "counts": [1, 2]}

log = logging.getLogger("hub")


class Script(DryRun):
    """Admission as a test has it.

    Attributes:
        asked: The namespaces and pods that it was asked about.
        answer: What it makes of a pod; at first nobody can say.
    """

    def __init__(self) -> None:
        super().__init__(Client(), 60)
        self.asked: list[tuple[str, Manifest]] = []
        self.answer: Callable[[Manifest], Answer] = lambda _: None

    async def admit(self, namespace: str, pod: Manifest) -> Answer:
        self.asked.append((namespace, pod))
        return self.answer(pod)


class StillRuntime(Runtime):
    """What a hub has once, but for a view that stands still and admission from a script."""

    def __init__(self, settings: Settings, view: StillView, admission: DryRun) -> None:
        super().__init__(settings)
        self.view = view
        self.dry_runs = DryRuns(admission)
        self.preflight = AdmittedPreflight(Preflight(view))
        self.surveys = Surveys(view.state)


class StillHub:
    """As much of a hub as KubeSpawner uses.

    Args:
        monkeypatch: Has each spawner use the runtime of its own hub.
        objects: What is in the cluster, each with its kind.
    """

    base_url = url = "/hub/"
    api_url = public_host = "http://hub"

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *objects: tuple[str, dict[str, object]]
    ) -> None:
        monkeypatch.setattr(runtime, "current", _of_its_hub)
        self.view = StillView(*objects)
        self.view.state.mark_known("DeviceClass")
        self.admission = Script()
        self._runtime: Runtime | None = None

    def runtime(self, settings: Settings) -> Runtime:
        """The hub's runtime; the first spawner's traits are those for everybody."""
        if self._runtime is None:
            self._runtime = StillRuntime(settings, self.view, self.admission)
        return self._runtime

    def spawner(self, **traits: Any) -> GPUSpawner:
        """Make alice's spawner, which has a way to the cluster that leads nowhere."""
        spawner: GPUSpawner = self._make(GPUSpawner, traits)
        return spawner

    def stock_spawner(self, **traits: Any) -> KubeSpawner:
        """The same without gpuspawner."""
        return self._make(KubeSpawner, traits)

    def _make(self, kind: type[KubeSpawner], traits: dict[str, Any]) -> Any:
        alice = SimpleNamespace(name="alice", id=1, url="/user/alice/", groups=[], spawners={})
        config = Config({kind.__name__: traits})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("kubespawner.spawner.load_config", lambda **_: None)
            patch.setattr("kubespawner.spawner.shared_client", lambda _: SimpleNamespace())
            spawner = kind(_mock=True, hub=self, user=alice, config=config)
        spawner.log = log
        alice.spawners[""] = spawner
        return spawner


def _of_its_hub(settings: Any) -> Runtime:
    hub: StillHub = settings.hub
    return hub.runtime(settings)
