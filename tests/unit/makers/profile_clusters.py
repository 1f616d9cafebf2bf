"""Nodes and pods for profiles to be judged on, the users, and the source that judges them."""

from typing import Any

from gpuspawner import GPUSpawner
from gpuspawner.profiles.profiles import Profiles
from tests.unit.makers.hubs import TAINT, StillHub, named
from tests.unit.makers.profile_lists import CPU, GPU
from tests.unit.makers.worlds import node, pod

TWO_GPUS = ("Node", node("a", 2))
TAINTED = ("Node", node("a", 2, taints=[TAINT]))
ONE_TAKEN = ("Pod", pod("somebody-s", 1, on="a"))
TAKEN_TOO = ("Pod", pod("another", 1, on="a"))


def profiles_of(spawner: Any) -> Profiles:
    source = spawner.gpuspawner_gates.sources.current
    assert isinstance(source, Profiles)
    return source


def of(hub: StillHub, name: str, **traits: Any) -> GPUSpawner:
    """Make the spawner of a user who is offered one profile without a GPU and one with GPUs."""
    return named(hub.spawner(**{"profile_list": [CPU, GPU], **traits}), name)
