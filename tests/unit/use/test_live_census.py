"""The census follows the cluster, and counts only what has changed."""

import asyncio
from types import SimpleNamespace
from unittest.mock import AsyncMock, Mock

import pytest
from jupyterhub.app import JupyterHub
from prometheus_client import CollectorRegistry, generate_latest

from gpuspawner.kube.objects import convert
from gpuspawner.policies.charges import Charge
from gpuspawner.policies.policies import Measure, What
from gpuspawner.use import live_census
from gpuspawner.use.census import AcceleratorGpus, Census, Held
from gpuspawner.use.live_census import LiveCensus
from gpuspawner.use.metrics import MOST_ACCELERATORS, Gauges
from tests.unit.makers.hubs import A100, StillHub
from tests.unit.makers.worlds import NAMESPACE, labelled, node, pod

TRAITS = {"accelerators": {"a100": A100}, "autoscaling": "none", "gpu_use": True}


class Living:
    """A hub whose cluster has one node with 4 GPUs."""

    def __init__(self, patch):
        hub = StillHub(patch, ("Node", labelled(node("a", 4), {"gpu": "a100"})))
        self.spawner = hub.spawner(**TRAITS)
        self.running = hub.runtime(self.spawner)
        self.users = {}
        self.census = LiveCensus(
            SimpleNamespace(db=None, tornado_settings={"users": self.users}), self.running
        )

    def put(self, kind, plain):
        self.running.view.state.put(convert(kind, plain))

    def claim(self, name):
        """Let the hub learn that a pod is a server of its own, with a GPU."""
        charge = Charge(frozenset({1}), amounts={Measure(What.GPUS, "nvidia.com/gpu"): 1})
        self.running.accounts.usage.put((NAMESPACE, name), charge)

    async def held(self):
        (found,) = (await self.census.take()).accelerators
        return found.held


@pytest.fixture
def living(monkeypatch):
    return Living(monkeypatch)


async def test_a_pod_is_somebody_elses_until_the_hub_knows_it_as_its_own(living):
    living.put("Pod", pod("jupyter-ann", 2, on="a"))
    assert await living.held() == Held(free=2, others=2)

    living.claim("jupyter-ann")

    assert await living.held() == Held(free=2, ours=2)


async def test_the_pod_of_a_server_that_starts_is_the_hubs_own(living):
    spawner = SimpleNamespace(pending="spawn", namespace=NAMESPACE, pod_name="jupyter-ann")
    living.users["ann"] = SimpleNamespace(spawners={"": spawner})
    living.put("Pod", pod("jupyter-ann", 2, on="a"))

    assert await living.held() == Held(free=2, ours=2)


async def test_a_hub_that_is_about_to_start_makes_no_users_for_the_census(living):
    """They would have no spawner class, for as long as the hub runs."""
    hub = JupyterHub(tornado_settings={"slow_spawn_timeout": 0})
    hub.db = None

    await LiveCensus(hub, living.running).take()

    assert not hub.trait_has_value("users")


async def test_the_hub_goes_on_while_it_looks_for_starts_among_thousands(living, monkeypatch):
    monkeypatch.setattr(live_census, "TURN_SECONDS", 0.0)
    runs = SimpleNamespace(pending=None)  # whether it runs, only the database would know
    living.users.update({str(it): SimpleNamespace(spawners={"": runs}) for it in range(100)})
    turns = 0

    async def count():
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count())
    await living.census.take()
    counting.cancel()

    assert turns >= 100


async def test_a_start_has_its_gpus_reserved_from_the_grant_on(living):
    living.spawner.user_options = {"accelerator": "a100", "gpus": 2}
    begun = living.spawner.run_pre_spawn_hook()
    if begun is not None:
        await begun

    assert await living.held() == Held(free=2, reserved=2)


async def test_its_version_changes_only_with_what_it_says(living):
    await living.census.take()
    before = living.census.version

    living.put("Pod", pod("without-gpus", 0, on="a"))
    await living.census.take()
    assert living.census.version == before

    living.put("Pod", pod("somebody", 1, on="a"))
    await living.census.take()
    assert living.census.version == before + 1


async def test_a_node_that_has_not_changed_is_not_counted_again(living, monkeypatch):
    living.put("Node", node("b", 1))
    await living.census.take()
    count = Mock(side_effect=live_census.node_gpus)
    monkeypatch.setattr(live_census, "node_gpus", count)

    living.put("Pod", pod("somebody", 1, on="b"))
    await living.census.take()

    assert [it.args[0].name for it in count.call_args_list] == ["b"]


async def test_a_node_that_is_gone_is_forgotten(living):
    await living.census.take()

    living.running.view.state.remove("Node", "", "a")

    assert await living.census.take() == Census()
    assert not living.census._counted


async def test_a_server_s_gpus_count_as_the_accelerator_of_its_node(living):
    for name, on in (("jupyter-ann", "a"), ("jupyter-bob", ""), ("not-the-hub-s", "a")):
        living.put("Pod", pod(name, 1, on=on, nodeSelector={}))
    living.claim("jupyter-ann")
    living.claim("jupyter-bob")
    await living.census.take()

    named = {
        name: living.census.counted_as((NAMESPACE, name), "nvidia.com/gpu")
        for name in ("jupyter-ann", "jupyter-bob", "not-the-hub-s", "not-there")
    }

    assert named.pop("jupyter-ann") == "a100"
    assert set(named.values()) == {"nvidia.com/gpu"}


async def test_a_census_that_fails_is_tried_again(living, monkeypatch, caplog):
    monkeypatch.setattr(live_census, "_EVERY_SECONDS", 0.001)
    living.census.take = AsyncMock(side_effect=[ValueError("no"), asyncio.CancelledError])

    with pytest.raises(asyncio.CancelledError):
        await living.census.run()

    assert "Can't count GPUs right now" in caplog.text


@pytest.fixture
def registry(living):
    """What a scrape reads of it."""
    made = CollectorRegistry()
    Gauges(living.running, living.census, registry=made)
    return made


async def test_a_scrape_has_the_gpus_by_accelerator_and_state_and_no_names(living, registry):
    living.put("Pod", pod("jupyter-ann-secret", 1, on="a"))
    living.claim("jupyter-ann-secret")
    await living.census.take()

    def value(name, **labels):
        return registry.get_sample_value(f"jupyterhub_gpuspawner_{name}", labels)

    assert value("gpus", accelerator="a100", state="free") == 3
    assert value("gpus", accelerator="a100", state="ours") == 1
    assert value("line_servers") == 0
    assert value("dry_runs_total") == 0
    assert value("view_objects", kind="Pod") == 1
    assert value("view_objects", kind="Node") == 1
    assert value("view_age_seconds") is not None
    assert b"secret" not in generate_latest(registry)


async def test_a_cluster_with_ever_so_many_accelerators_has_a_bounded_number_of_series(
    living, registry
):
    many = [AcceleratorGpus(f"a{it}", "", 1, Held(free=1000 - it)) for it in range(200)]
    living.census.last = Census(accelerators=tuple(many))

    text = generate_latest(registry).decode()

    series = [it for it in text.splitlines() if not it.startswith("#")]
    assert len(series) <= 500
    rest = sum(1000 - it for it in range(MOST_ACCELERATORS, 200))
    assert registry.get_sample_value(
        "jupyterhub_gpuspawner_gpus", {"accelerator": "others", "state": "free"}
    ) == float(rest)
