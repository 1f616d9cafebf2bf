"""The servers that have GPUs are found with their owners, their nodes and their use."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from gpuspawner.cluster.background import Turn
from gpuspawner.kube.objects import convert
from gpuspawner.policies.charges import Charge
from gpuspawner.use.holders import Holder, holders
from gpuspawner.use.live_census import LiveCensus
from tests.unit.makers.hub_database import HubDatabase
from tests.unit.makers.hubs import A100, StillHub
from tests.unit.makers.policy_pods import container, plain, read, started
from tests.unit.makers.profile_lists import GPU as PROFILE
from tests.unit.makers.worlds import labelled, node
from tests.unit.use.facts import fact

if TYPE_CHECKING:
    from gpuspawner.kube.meta import Key
    from gpuspawner.runtime import Runtime
    from gpuspawner.troubles.facts import Fact

TRAITS: dict[str, Any] = {"autoscaling": "none", "gpu_use": True}
OFFERED: dict[str, Any] = {"accelerators": {"a100": A100}}
A100_LABEL = {"gpu": "a100"}
PULLS, RUNS = "2026-11-27T06:05:00Z", "2026-11-27T06:30:00Z"
ON_A = {"nodeName": "a", "nodeSelector": {"gpu": "a100"}}


class Holding:
    """A hub with a node, its database, and what is known of the use of GPUs."""

    def __init__(self, patch: pytest.MonkeyPatch, labels: Any = A100_LABEL, **traits: Any) -> None:
        hub = StillHub(patch, ("Node", labelled(node("a", 4), labels)))
        self.running: Runtime = hub.runtime(hub.spawner(**(traits or OFFERED), **TRAITS))
        self.database = HubDatabase()
        self.use: dict[Key, Fact] = {}
        self.users: dict[str, Any] = {}

    def add(self, pod: dict[str, Any], owner: int, server: str = "", profile: str = "") -> None:
        """Let a server of this owner's have a pod."""
        accounts = self.running.accounts
        assert accounts is not None
        metadata = pod["metadata"]
        accounts.ledger.claims.pods[metadata["uid"]] = Charge(
            frozenset({owner}), server, accelerator=profile
        )
        accounts.ledger.put(read(pod))
        self.running.view.state.put(convert("Pod", pod))

    async def found(self) -> list[Holder]:
        hub: Any = SimpleNamespace(db=None, users=self.users)
        census = LiveCensus(hub, self.running)
        await census.take()
        return await holders(self.running, self.database.session, Turn(1), self.use.get, census)


@pytest.fixture
def holding(monkeypatch: pytest.MonkeyPatch) -> Holding:
    return Holding(monkeypatch)


async def test_a_server_has_its_owner_its_accelerator_its_node_and_its_times(
    holding: Holding,
) -> None:
    ann = holding.database.user("ann")
    row = holding.database.server(ann, "thesis")
    row.last_activity = datetime(2026, 11, 27, 7, 0)  # noqa: DTZ001, as the hub stores it
    holding.database.session.commit()
    holding.use["jhub", "jupyter-ann--thesis"] = idle = fact("idle", seconds=60)
    holding.add(
        {**plain("ann", "thesis", **ON_A), "status": started(PULLS, RUNS)}, ann.id, "thesis"
    )

    assert await holding.found() == [
        Holder(
            "ann",
            "thesis",
            "A100",
            1,
            "a",
            datetime(2026, 11, 27, 6, 30, tzinfo=UTC),
            datetime(2026, 11, 27, 7, 0, tzinfo=UTC),
            idle,
        )
    ]


async def test_a_server_whose_pod_has_no_node_yet_has_no_times(holding: Holding) -> None:
    ann = holding.database.user("ann")
    holding.database.server(ann)
    holding.add(plain("ann"), ann.id)

    (found,) = await holding.found()

    assert (found.owner, found.accelerator, found.node, found.since, found.used) == (
        "ann",
        "nvidia.com/gpu",
        "",
        None,
        None,
    )


async def test_a_server_whose_image_is_pulled_does_not_run_yet(holding: Holding) -> None:
    ann = holding.database.user("ann")
    holding.database.server(ann)
    holding.add({**plain("ann", **ON_A), "status": {"startTime": PULLS}}, ann.id)

    (found,) = await holding.found()

    assert found.since is None


@pytest.mark.parametrize("pending", ["spawn", None])
async def test_a_server_starts_as_long_as_the_hub_says_so(
    holding: Holding, pending: str | None
) -> None:
    """Its container may run before, or again and again after it."""
    ann = holding.database.user("ann")
    holding.database.server(ann)
    holding.add({**plain("ann", **ON_A), "status": started(PULLS, RUNS)}, ann.id)
    spawner = SimpleNamespace(pending=pending, namespace="jhub", pod_name="jupyter-ann--")
    holding.users["ann"] = SimpleNamespace(spawners={"": spawner})

    (found,) = await holding.found()

    assert found.is_starting == (pending == "spawn")


@pytest.mark.parametrize(
    ("gate", "is_queued"), [("kueue.x-k8s.io/admission", True), ("example.org/x", False)]
)
async def test_a_server_that_kueue_holds_back_is_queued(
    holding: Holding, gate: str, is_queued: bool
) -> None:
    ann = holding.database.user("ann")
    holding.database.server(ann)
    holding.add(plain("ann", schedulingGates=[{"name": gate}]), ann.id)

    (found,) = await holding.found()

    assert found.is_queued is is_queued


async def test_a_server_of_a_profile_has_the_model_of_its_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its grant has the slug of the profile, and another table on the page names the model."""
    holding = Holding(monkeypatch, {"nvidia.com/gpu.product": "Tesla-T4"}, profile_list=[PROFILE])
    ann = holding.database.user("ann")
    holding.database.server(ann)
    holding.add(plain("ann", nodeName="a", nodeSelector={"pool": "a"}), ann.id, profile="big")

    [found] = await holding.found()

    assert found.accelerator == "NVIDIA Tesla T4"


async def test_a_server_with_any_gpu_has_the_model_of_its_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other table on the page counts the node's GPUs as those of the model alone."""
    any_gpu = {"display_name": "Any GPU", "node_selector": {"pool": "gpus"}}
    narrower = {"display_name": "T4", "node_selector": {"pool": "gpus", "model": "t4"}}
    offered = {"any": any_gpu, "t4": narrower}
    holding = Holding(monkeypatch, {"pool": "gpus", "model": "t4"}, accelerators=offered)
    ann = holding.database.user("ann")
    holding.database.server(ann)
    holding.add(plain("ann", nodeName="a", nodeSelector={"pool": "gpus"}), ann.id, profile="any")

    [found] = await holding.found()

    assert found.accelerator == "T4"


async def test_a_server_has_as_many_devices_as_its_pod_whatever_policies_count_them_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other tables on the page count slices and shares, too, and not parts of a GPU."""
    holding = Holding(monkeypatch, gpu_weights={"nvidia.com/gpu": "1/7"}, **OFFERED)
    ann = holding.database.user("ann")
    holding.database.server(ann)
    holding.add(plain("ann", **ON_A), ann.id)

    [found] = await holding.found()

    assert found.gpus == 1


async def test_servers_without_gpus_and_pods_of_nobody_are_left_out(holding: Holding) -> None:
    ann = holding.database.user("ann")
    holding.database.server(ann)
    holding.database.server(ann, "stopped", runs=False)
    holding.add(plain("ann", containers=[container(cpu=1)]), ann.id)
    holding.add(plain("ann", "stopped", **ON_A), ann.id, "stopped")
    holding.add(plain("eve", **ON_A), 666)

    assert await holding.found() == []
