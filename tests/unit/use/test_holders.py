"""The servers that have GPUs are found with their owners, their nodes and their use."""

from datetime import UTC, datetime
from types import SimpleNamespace

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

TRAITS = {"autoscaling": "none", "gpu_use": True}
OFFERED = {"accelerators": {"a100": A100}}
A100_LABEL = {"gpu": "a100"}
PULLS, RUNS = "2026-11-27T06:05:00Z", "2026-11-27T06:30:00Z"
ON_A = {"nodeName": "a", "nodeSelector": {"gpu": "a100"}}


class Holding:
    """A hub with a node, its database, and what is known of the use of GPUs."""

    def __init__(self, patch, labels=A100_LABEL, **traits):
        hub = StillHub(patch, ("Node", labelled(node("a", 4), labels)))
        self.running = hub.runtime(hub.spawner(**(traits or OFFERED), **TRAITS))
        self.database = HubDatabase()
        self.use = {}
        self.users = {}

    def add(self, pod, owner, server="", profile=""):
        """Let a server of this owner's have a pod."""
        ledger, charge = self.running.accounts.ledger, Charge({owner}, server, accelerator=profile)
        ledger.claims.pods[pod["metadata"]["uid"]] = charge
        ledger.put(read(pod))
        self.running.view.state.put(convert("Pod", pod))

    def add_ann(self, pod, server="", profile=""):
        """Let ann have a server with this pod, and return how the hub stores it."""
        ann = self.database.user("ann")
        self.add(pod, ann.id, server, profile)
        return self.database.server(ann, server)

    async def found(self):
        hub = SimpleNamespace(db=None, tornado_settings={"users": self.users})
        census = LiveCensus(hub, self.running)
        await census.take()
        return await holders(self.running, self.database.session, Turn(1), self.use.get, census)


@pytest.fixture
def holding(monkeypatch):
    return Holding(monkeypatch)


async def test_a_server_has_its_owner_its_accelerator_its_node_and_its_times(holding):
    pod = {**plain("ann", "thesis", **ON_A), "status": started(PULLS, RUNS)}
    row = holding.add_ann(pod, "thesis")
    row.last_activity = datetime(2026, 11, 27, 7, 0)  # noqa: DTZ001, as the hub stores it
    holding.database.session.commit()
    holding.use["jhub", "jupyter-ann--thesis"] = idle = fact("idle", seconds=60)

    since, used = (datetime(2026, 11, 27, *it, tzinfo=UTC) for it in ((6, 30), (7, 0)))
    assert await holding.found() == [Holder("ann", "thesis", "A100", 1, "a", since, used, idle)]


async def test_a_server_whose_pod_has_no_node_yet_has_no_times(holding):
    holding.add_ann(plain("ann"))

    assert await holding.found() == [Holder("ann", "", "nvidia.com/gpu", 1, "", None, None)]


@pytest.mark.parametrize("pending", ["spawn", None])
async def test_a_server_starts_as_long_as_the_hub_says_so(holding, pending):
    """Its container may run before, or again and again after it."""
    holding.add_ann({**plain("ann", **ON_A), "status": started(PULLS, RUNS)})
    spawner = SimpleNamespace(pending=pending, namespace="jhub", pod_name="jupyter-ann--")
    holding.users["ann"] = SimpleNamespace(spawners={"": spawner})

    (found,) = await holding.found()

    assert found.is_starting == (pending == "spawn")


@pytest.mark.parametrize(
    ("gate", "is_queued"), [("kueue.x-k8s.io/admission", True), ("example.org/x", False)]
)
async def test_a_server_that_kueue_holds_back_is_queued(holding, gate, is_queued):
    holding.add_ann(plain("ann", schedulingGates=[{"name": gate}]))

    (found,) = await holding.found()

    assert found.is_queued is is_queued


async def test_a_server_of_a_profile_has_the_model_of_its_node(monkeypatch):
    """Its grant has the slug of the profile, and another table on the page names the model."""
    holding = Holding(monkeypatch, {"nvidia.com/gpu.product": "Tesla-T4"}, profile_list=[PROFILE])
    holding.add_ann(plain("ann", nodeName="a", nodeSelector={"pool": "a"}), profile="big")

    [found] = await holding.found()

    assert found.accelerator == "NVIDIA Tesla T4"


async def test_a_server_has_as_many_devices_as_its_pod_whatever_they_weigh(monkeypatch):
    """The other tables on the page count slices and shares, too, and not parts of a GPU."""
    holding = Holding(monkeypatch, gpu_weights={"nvidia.com/gpu": "1/7"}, **OFFERED)
    holding.add_ann(plain("ann", **ON_A))

    [found] = await holding.found()

    assert found.gpus == 1


async def test_servers_without_gpus_and_pods_of_nobody_are_left_out(holding):
    ann = holding.add_ann(plain("ann", containers=[container(cpu=1)])).user
    holding.database.server(ann, "stopped", runs=False)
    holding.add(plain("ann", "stopped", **ON_A), ann.id, "stopped")
    holding.add(plain("eve", **ON_A), 666)

    assert await holding.found() == []
