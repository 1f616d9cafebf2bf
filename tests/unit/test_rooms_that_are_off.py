"""What a hub loads: none of a feature that its configuration doesn't use."""

import json
import subprocess
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import pytest

PROFILES = [{"display_name": "CPU", "slug": "cpu", "default": True}]
OPTIONAL = {
    "policies": {"policies": {"course": {"gpus_per_user": 1}}},
    "line": {"queue": True},
    "use": {"gpu_use": True},
    "profiles": {"profile_list": PROFILES, "accelerators": {}},
}
"""The rooms that a hub may do without, and the traits that turn each on."""
MODULES = (
    "kueue.queues",
    "launch.awaited_node",
    "messages.admission",
    "messages.line",
    "messages.policies",
    "offers.discovery",
    "offers.gpu_check",
    "scaling.cluster_autoscaler",
    "scaling.growing",
    "scaling.karpenter",
    "scaling.node_pool",
    "web.line",
)
"""What else a hub does without as long as its configuration and its cluster have no use for it."""
MOST_LINES = 36_000
"""Of the package, for a hub that uses none of these; none of it for a feature that is off."""

# Each in a process of its own: a hub that has begun, and what goes on in it.
BEGINS = """
import asyncio, json, sys
import pytest
from traitlets.config import Config
import gpuspawner
from gpuspawner.gates import startup_report
from gpuspawner.start.refusal import Refusal
from gpuspawner.web.handlers import serve
from tests.unit.makers.hubs import A100, StillHub
from tests.unit.makers.restarts import pod, set_pod
from tests.unit.makers.worlds import labelled, node

traits = {"accelerators": {"a100": A100}, **json.loads(sys.argv[1])}
given = Config()
given.GPUSpawner.update(traits)
gpuspawner.configure(given)
patch = pytest.MonkeyPatch()
hub = StillHub(patch, ("Node", labelled(node("a", 1), {"gpu": "a100"})))
spawner = hub.spawner(**traits)
"""
STARTS = """
async def starts():
    assert "a100" in await spawner.get_options_form()
    with pytest.raises(Refusal):
        await spawner.options_from_query({"opt-accelerator": ["a100"], "opt-gpus": ["2"]})
    spawner.user_options = {"accelerator": "a100", "gpus": 1}
    begun = spawner.run_pre_spawn_hook()
    if begun is not None:
        await begun
    await spawner.get_pod_manifest()
    set_pod(spawner, pod())
    spawner.gpuspawner_gates.server_state.answers()
    spawner.gpuspawner_gates.server_state.polled(1, pod("EvictionByEvictionAPI"))
    place = {"since": 1, "wish": "here", "options": {}}
    spawner.load_state({"gpuspawner": {"granted": "{}", "place": place}})

asyncio.run(starts())
"""
SETS_PROFILES_FOR_A_USER = f"""
spawner.profile_list = {PROFILES}
assert "cpu" in asyncio.run(spawner.get_options_form())
"""
TELLS = """
loaded = {it.__name__: it.__file__ for it in sys.modules.values() if hasattr(it, "__file__")}
print(json.dumps({k: v for k, v in loaded.items() if k.startswith("gpuspawner.")}))
"""


def loads(*goes_on: str, **traits: object) -> dict[str, Path]:
    """Return the modules that a hub with these traits has loaded, by their names in the package."""
    command = [sys.executable, "-c", "".join((BEGINS, *goes_on, TELLS)), json.dumps(traits)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout.splitlines()[-1])
    return {name.removeprefix("gpuspawner."): Path(file) for name, file in found.items()}


def rooms(modules: Iterable[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


@pytest.fixture(scope="module")
def without() -> dict[str, Path]:
    return loads(STARTS)


@pytest.mark.parametrize("room", [*OPTIONAL, "kueue"])
def test_what_a_hub_does_not_use_is_not_loaded(room, without) -> None:
    assert {"gates", "preflight", "launch", "web"} <= rooms(without)
    assert room not in rooms(without)


@pytest.mark.parametrize("module", MODULES)
def test_nor_is_what_only_some_clusters_and_servers_need(module, without) -> None:
    assert find_spec(f"gpuspawner.{module}") is not None
    assert module not in without


def test_a_hub_that_uses_no_feature_loads_few_lines(without) -> None:
    assert sum(it.read_text().count("\n") for it in without.values()) < MOST_LINES


@pytest.mark.parametrize("room", OPTIONAL)
def test_what_a_hub_uses_is_loaded_before_anybody_asks_for_a_server(room) -> None:
    assert room in rooms(loads(**OPTIONAL[room]))


def test_a_hub_that_finds_profiles_later_loads_them_then() -> None:
    assert "profiles" in rooms(loads(SETS_PROFILES_FOR_A_USER))
