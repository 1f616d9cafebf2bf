"""Real spawners without a hub, on a cluster that the test defines."""

import asyncio
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from kubespawner import KubeSpawner
from traitlets.config import Config

from gpuspawner import GPUSpawner, runtime
from gpuspawner.cluster.client import Client
from gpuspawner.cluster.view import ClusterView
from gpuspawner.gates.accelerators import Accelerators
from gpuspawner.kube.objects import Manifest
from gpuspawner.preflight.availability import Availability
from gpuspawner.preflight.dry_runs import Answer, DryRun, DryRuns
from gpuspawner.preflight.nobody_waits import DecidesAlone
from gpuspawner.reservations.reservations import Reservations
from gpuspawner.runtime import Runtime
from gpuspawner.scheduling.verdicts import Verdicts
from gpuspawner.traits.settings import Settings
from tests.unit.makers.worlds import StillView, labelled, node, pod

if TYPE_CHECKING:
    from gpuspawner.line.hub_line import HubLine
    from gpuspawner.line.queue_config import QueueRules
    from gpuspawner.line.waiting_line import WaitingLine

A100 = {"display_name": "A100", "node_selector": {"gpu": "a100"}, "counts": [1, 2]}

TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists"}

OF_ANN = ("Node", labelled(node("a", 2), {"owner": "ann"}))

log = logging.getLogger("hub")


class Script(DryRun):
    """Admission with answers from the test.

    Attributes:
        asked: The namespaces and pods of the questions.
        answer: Its answer about a pod; by default, the pod as it is.
    """

    def __init__(self) -> None:
        super().__init__(Client(), 60)
        self.asked: list[tuple[str, Manifest]] = []
        self.answer: Callable[[Manifest], Answer] = lambda pod: pod

    async def admit(self, namespace: str, pod: Manifest) -> Answer:
        await asyncio.sleep(0)  # as for an answer of the API server
        self.asked.append((namespace, pod))
        return self.answer(pod)


class StillRuntime(Runtime):
    """A runtime with a fixed view and admission from a `Script`."""

    def __init__(self, settings: Settings, view: StillView, admission: DryRun) -> None:
        super().__init__(settings, view)
        self.dry_runs = DryRuns(admission)

    def _make_line(self, rules: "QueueRules") -> "HubLine":
        made = super()._make_line(rules)
        made.make_line = self._waiting  # type: ignore[method-assign]
        return made

    def _waiting(
        self,
        view: ClusterView,
        verdicts: Verdicts,
        reservations: Reservations,
        decide: DecidesAlone,
    ) -> "WaitingLine":
        """As `HubLine.make_line`, but nobody tells who is idle, and nobody comes back."""
        from gpuspawner.line.stored_places import StoredPlaces
        from gpuspawner.line.waiting_line import WaitingLine

        assert self.line is not None
        made = WaitingLine(view, verdicts, reservations, decide, StoredPlaces())
        self.line._waiting = made
        return made


class StillHub:
    """The parts of a hub that KubeSpawner uses.

    Args:
        monkeypatch: Makes each spawner use the runtime of its own hub.
        objects: The objects in the cluster, each with its kind.
    """

    base_url = url = "/hub/"
    api_url = public_host = "http://hub"

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *objects: tuple[str, dict[str, object]]
    ) -> None:
        for name in ("current", "known"):
            monkeypatch.setattr(runtime, name, _of_its_hub)
        self.view = StillView(*objects)
        self.view.state.mark_known("DeviceClass")
        self.admission = Script()
        self._runtime: Runtime | None = None

    def runtime(self, settings: Settings) -> Runtime:
        """Return the hub's runtime; the first call decides its traits."""
        if self._runtime is None:
            self._runtime = StillRuntime(settings, self.view, self.admission)
        return self._runtime

    def spawner(self, of: type[GPUSpawner] = GPUSpawner, **traits: Any) -> GPUSpawner:
        """Make alice's spawner, with a Kubernetes client that does nothing."""
        spawner: GPUSpawner = self._make(of, traits)
        return spawner

    def stock_spawner(self, **traits: Any) -> KubeSpawner:
        """Make alice's spawner as KubeSpawner, without gpuspawner."""
        return self._make(KubeSpawner, traits)

    async def _no_auth_state(self) -> None:
        """Answer as for a user whose authenticator keeps nothing."""

    def _make(self, kind: type[KubeSpawner], traits: dict[str, Any]) -> Any:
        alice = SimpleNamespace(name="alice", id=1, url="/user/alice/", groups=[], spawners={})
        alice.allow_named_servers = False
        alice.get_auth_state = self._no_auth_state
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


async def rows_of(accelerators: Accelerators) -> tuple[Availability, ...]:
    """Return each accelerator's availability to a server's owner, as an open form asks for it."""
    entitlement = await accelerators.policing.entitlement()
    return accelerators.survey(entitlement, await accelerators.stock_pod())[1]


def named(spawner: GPUSpawner, name: str) -> GPUSpawner:
    """Make alice's spawner that of another user."""
    spawner.user.name, spawner.pod_name = name, f"jupyter-{name}"
    return spawner


def repelling(label: str) -> tuple[str, dict[str, object]]:
    """Return a pod on node a that keeps away those in which this label is bob."""
    term = {
        "topologyKey": "gpu",
        "labelSelector": {"matchLabels": {label: "bob"}},
        "namespaceSelector": {},
    }
    away = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return "Pod", pod("guard", 0, on="a", affinity={"podAntiAffinity": away})


def tolerating(pod: Manifest) -> Manifest:
    """Admit a pod as the API server's ExtendedResourceToleration does."""
    spec = pod["spec"]
    return {**pod, "spec": {**spec, "tolerations": [*spec.get("tolerations", ()), TOLERATION]}}
