"""Options that an administrator's own code reads, beside ours or without any of ours."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from gpuspawner import GPUSpawner
from gpuspawner.spawner import in_front_of
from gpuspawner.start.refusal import Refusal
from tests.unit.makers.hubs import A100
from tests.unit.makers.profile_clusters import TWO_GPUS
from tests.unit.makers.worlds import labelled, node


def their_image(spawner: Any) -> str:
    return str(getattr(spawner, "user_options", {}).get("image", ""))


def take_their_image(spawner: Any) -> None:
    spawner.image = their_image(spawner)


class OwnHook:
    """A hook that is an object."""

    def __call__(self, spawner: Any) -> None:
        take_their_image(spawner)


class OwnMethod:
    """A hook that is a method, and reads the options in another one."""

    def begin(self, spawner: Any, *_: Any) -> None:
        self.take(spawner)

    def take(self, spawner: Any) -> None:
        spawner.image = spawner.user_options["image"]


READING = [
    {"apply_user_options": {"image": "image"}},
    {"apply_user_options": print},
    {"options_from_form": "simple"},
    {"pre_spawn_hook": take_their_image},
    {"pre_spawn_hook": OwnHook()},
    {"pre_spawn_hook": OwnMethod().begin},
    {"pre_spawn_hook": partial(OwnMethod().begin)},
    {"modify_pod_hook": lambda spawner, pod: (spawner.user_options, pod)[1]},
    {"auth_state_hook": lambda spawner, _: take_their_image(spawner)},
    {"after_pod_created_hook": lambda spawner, _: take_their_image(spawner)},
    {"uid": lambda spawner: spawner.user_options["gpus"]},
    {"environment": {"IMAGE": their_image}},
    {"post_stop_hook": take_their_image},
    {"group_overrides": lambda spawner: (spawner.user_options, {})[1]},
    {"server_token_scopes": lambda spawner: (spawner.user_options, [])[1]},
]
FOUND = ("Node", labelled(node("a", 2), {"nvidia.com/gpu.product": "Tesla-T4"}))
THEIR_OPTIONS = {"image": "lab:2", "gpus": "two", "memory": ["1Gi"], "accelerator": 7, "course": 1}


@pytest.mark.parametrize("traits", READING)
async def test_options_of_an_administrator_who_offers_nothing_of_ours_are_theirs(
    hub_with, traits
) -> None:
    spawner = hub_with(FOUND).spawner(**traits)
    sources = spawner.gpuspawner_gates.sources

    assert (await sources.resolve(THEIR_OPTIONS)).options == THEIR_OPTIONS
    assert await spawner.get_options_form() == ""


@pytest.mark.parametrize("traits", READING)
async def test_an_administrator_who_offers_something_of_ours_shares_the_options(
    hub_with, traits
) -> None:
    sources = (
        hub_with(TWO_GPUS).spawner(accelerators={"a100": A100}, **traits).gpuspawner_gates.sources
    )

    with pytest.raises(Refusal):
        await sources.resolve(THEIR_OPTIONS)
    assert (await sources.resolve({"gpus": 1, "course": 1})).options["course"] == 1


async def test_without_such_code_what_the_hub_discovers_is_on_offer(hub_with) -> None:
    spawner = hub_with(FOUND).spawner(pre_spawn_hook=print)

    with pytest.raises(Refusal):
        await spawner.gpuspawner_gates.sources.resolve(THEIR_OPTIONS)
    assert "Tesla T4" in await spawner.get_options_form()


class ReadsOptions(GPUSpawner):
    def start(self) -> Any:
        self.image = self.user_options.get("image", "lab:1")
        return super().start()


class Mixin:
    def start(self) -> Any:
        take_their_image(self)
        return super().start()  # type: ignore[misc]


class Mixed(Mixin, GPUSpawner): ...


@pytest.mark.parametrize("own", [ReadsOptions, Mixed])
async def test_a_class_that_is_derived_from_ours_may_read_the_options_too(hub_with, own) -> None:
    spawner = hub_with(FOUND).spawner(in_front_of(own))

    assert (await spawner.gpuspawner_gates.sources.resolve(THEIR_OPTIONS)).options == THEIR_OPTIONS
    assert await spawner.get_options_form() == ""


async def test_such_a_class_reads_ours_if_the_administrator_offers_some(hub_with) -> None:
    spawner = hub_with(FOUND).spawner(ReadsOptions, memory_choices=["1Gi"])

    chosen = await spawner.gpuspawner_gates.sources.resolve({"gpus": 2})

    assert (chosen.options["accelerator"], chosen.options["memory"]) == ("tesla-t4", "1Gi")


async def test_an_authenticator_may_read_the_options_too(hub_with) -> None:
    spawner = hub_with(FOUND).spawner()
    assert spawner.gpuspawner_gates.sources.accelerators
    reader: Any = SimpleNamespace(pre_spawn_start=lambda _user, its: take_their_image(its))

    spawner.authenticator = reader

    assert (await spawner.gpuspawner_gates.sources.resolve(THEIR_OPTIONS)).options == THEIR_OPTIONS


@pytest.mark.parametrize("nodes", [[("Node", node("a", 0))], [FOUND]], ids=["cpu", "gpus"])
async def test_a_hub_without_offers_takes_any_options_that_are_not_of_gpus(hub_with, nodes) -> None:
    """Who reads them may be in a module of the administrator's that nobody can look into."""
    sources = hub_with(*nodes).spawner().gpuspawner_gates.sources
    theirs = {"image": "lab:2", "memory": ["1Gi"], "course": 1}

    assert (await sources.resolve(theirs)).options == theirs


@pytest.mark.parametrize("stored", [{}, {"course": 1}, {"gpus": 0}])
async def test_nothing_is_added_to_options_without_a_gpu_on_a_hub_without_offers(
    hub_with, stored
) -> None:
    """Whoever reads them may look which there are."""
    spawner = hub_with(FOUND).spawner()
    spawner.user_options = stored
    assert spawner.gpuspawner_gates.sources.accelerators

    kept = await spawner.gpuspawner_gates.sources.current.stored()
    spawner.run_pre_spawn_hook()

    assert kept.options == spawner.user_options == stored
    chosen = await spawner.gpuspawner_gates.sources.resolve({**stored, "gpus": 2})
    assert chosen.options == {**stored, "accelerator": "tesla-t4", "gpus": 2}
