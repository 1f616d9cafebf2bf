"""What a hub loads: none of a feature that its configuration doesn't use."""

import json
import subprocess
import sys

import pytest

PROFILES = [{"display_name": "CPU", "slug": "cpu", "default": True}]
OPTIONAL = {
    "policies": {"policies": {"course": {"gpus_per_user": 1}}},
    "line": {"queue": True},
    "use": {"gpu_use": True},
    "profiles": {"profile_list": PROFILES, "accelerators": {}},
}
"""The rooms that a hub may do without, and the traits that turn each on."""

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

traits = {"accelerators": {"a100": A100}, "autoscaling": "none", **json.loads(sys.argv[1])}
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
rooms = {name.split(".")[1] for name in sys.modules if name.startswith("gpuspawner.")}
print(json.dumps(sorted(rooms)))
"""


def rooms(*goes_on: str, **traits: object) -> set[str]:
    """Return the rooms that a hub with these traits has loaded."""
    command = [sys.executable, "-c", "".join((BEGINS, *goes_on, TELLS)), json.dumps(traits)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return set(json.loads(run.stdout.splitlines()[-1]))


@pytest.fixture(scope="module")
def without() -> set[str]:
    return rooms(STARTS)


@pytest.mark.parametrize("room", [*OPTIONAL, "kueue"])
def test_what_a_hub_does_not_use_is_not_loaded(room, without) -> None:
    assert {"gates", "preflight", "launch", "web"} <= without
    assert room not in without


@pytest.mark.parametrize("room", OPTIONAL)
def test_what_a_hub_uses_is_loaded_before_anybody_asks_for_a_server(room) -> None:
    assert room in rooms(**OPTIONAL[room])


def test_a_hub_that_finds_profiles_later_loads_them_then() -> None:
    assert "profiles" in rooms(SETS_PROFILES_FOR_A_USER)
