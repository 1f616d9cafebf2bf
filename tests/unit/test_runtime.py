"""The traits that the hub's runtime uses."""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from traitlets.config import Config

from gpuspawner import runtime as runtime_module
from gpuspawner.cluster.health import Forbidden, Unreachable
from gpuspawner.cluster.schedulers import ONLY_SCORING
from gpuspawner.configuration import check
from gpuspawner.offers import discovery
from gpuspawner.runtime import Runtime
from gpuspawner.scheduling import Rules
from tests.unit.makers.scripted import ScriptedServer, Step, after, failure, obj, page, silence
from tests.unit.makers.worlds import StillView, node, waiting
from tests.waiting import UNIT_PATIENCE as PATIENCE

PROFILE = {"display_name": "T4"}


def runtime(**traits: object) -> Runtime:
    return Runtime(check(Config(GPUSpawner=traits)))


@pytest.mark.parametrize(("given", "version"), [("1.30", "1.30"), ("tomorrow's", "1.37")])
def test_the_scheduler_s_version_decides_and_an_invalid_one_means_the_newest(given, version):
    view = runtime(scheduler_version=given).view

    assert view.state.rules == Rules.of_version(version, ONLY_SCORING)


def test_schedulers_with_the_default_filters_are_judged_like_the_default_one() -> None:
    view = runtime(scheduler_version="1.36", default_filter_schedulers=["jhub-user-scheduler"]).view

    others = {"default-scheduler", "jhub-user-scheduler"}
    assert view.state.rules.schedulers == others | ONLY_SCORING.keys()


def notes(caplog: pytest.LogCaptureFixture, **traits: object) -> list[str]:
    caplog.set_level("INFO", runtime_module.__name__)
    view = StillView(("Node", node("a", 1)))
    assert Runtime(check(Config(GPUSpawner=traits)), view).offers.accelerators
    return [it.message for it in caplog.records if it.name == runtime_module.__name__]


def test_the_log_names_the_accelerators_that_users_choose_from(caplog) -> None:
    [note] = notes(caplog)

    assert "A pool that has no node now cannot be seen" in note


@pytest.mark.parametrize(
    "traits",
    [
        {"profile_list": [PROFILE]},
        {"profile_list": lambda _: [PROFILE]},
        {"options_form": lambda _: ""},
        {"extra_resource_limits": {"nvidia.com/gpu": "1"}},
    ],
    ids=["profiles", "a function for profiles", "a form", "GPUs for every server"],
)
def test_nobody_is_asked_to_configure_accelerators_beside(traits, caplog) -> None:
    assert notes(caplog, **traits) == []


@pytest.mark.parametrize(
    ("traits", "gives"),
    [
        ({"extra_resource_limits": {"nvidia.com/gpu": 1}}, True),
        ({"extra_resource_guarantees": {"nvidia.com/mig-1g.5gb": "1"}}, True),
        ({"extra_resource_limits": {"nvidia.com/gpu": "0"}}, False),
        ({"extra_resource_limits": {"smarter-devices/fuse": "1"}}, False),
        ({"extra_resource_limits": {"nvidia.com/gpu": "1"}, "memory_choices": ["1Gi"]}, False),
        ({"extra_resource_limits": {"amd.com/gpu": "1"}, "profile_list": [PROFILE]}, False),
    ],
)
def test_every_server_gets_gpus_only_if_users_choose_nothing(traits, gives) -> None:
    assert runtime(**traits).gpus_for_all is gives


@pytest.mark.parametrize("set_aside", [False, True])
async def test_servers_are_counted_only_if_somebody_is_judged(set_aside, monkeypatch) -> None:
    made, started = runtime(policies={"course": {"gpus_per_user": 1}}), []
    assert made.accounts is not None
    monkeypatch.setattr(made.view, "start", lambda: None)
    monkeypatch.setattr(made.accounts.following, "start", lambda: started.append("counting"))
    if set_aside:
        made.policies = None

    made.start()
    for task in made._tasks:
        task.cancel()
    await asyncio.gather(*made._tasks, return_exceptions=True)

    assert started == ([] if set_aside else ["counting"])


@pytest.mark.parametrize("gpu_use", [True, {}])
def test_servers_are_counted_where_the_use_of_gpus_is_kept(gpu_use) -> None:
    assert runtime(gpu_use=gpu_use).accounts is not None


def test_accelerators_are_discovered_again_only_when_a_node_has_changed(monkeypatch) -> None:
    view, seen = StillView(("Node", node("a", 1))), []
    found = discovery.discover
    monkeypatch.setattr(discovery, "discover", lambda *it: seen.append(it) or found(*it))
    made = Runtime(check(Config()), view)

    assert made.offers.accelerators["gpu"].counts == (1,)
    view.put("Pod", {"metadata": {"name": "b"}, "spec": {"nodeName": "a"}})
    assert made.offers.accelerators["gpu"].counts == (1,)
    assert len(seen) == 1
    view.put("Node", node("c", 2))
    assert made.offers.accelerators["gpu"].counts == (1, 2)
    view.state.remove("Node", "", "c")
    assert made.offers.accelerators["gpu"].counts == (1,)


def on_k3s() -> StillView:
    plain = node("a", 1)
    plain["metadata"]["labels"] = {"node.kubernetes.io/instance-type": "k3s"}
    return StillView(("Node", plain))


@asynccontextmanager
async def reading(view: StillView, *answers: Step) -> AsyncIterator[Runtime]:
    """Start a runtime whose API server answers so when it is asked for RuntimeClasses."""
    async with ScriptedServer(runtimeclasses=[*answers]).serving() as client:
        made = Runtime(check(Config()), view)
        made.client = client
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(view, "start", lambda: None)
            made.start()
        try:
            yield made
        finally:
            for task in made._tasks:
                task.cancel()
            await asyncio.gather(*made._tasks, return_exceptions=True)


def runtime_class(made: Runtime) -> str | None:
    return made.offers.accelerators["gpu"].runtime_class


NVIDIA = page(obj("nvidia", handler="nvidia"))


@pytest.mark.parametrize("answers", [[NVIDIA], [failure(503), NVIDIA]], ids=["first", "second"])
async def test_runtime_classes_are_read_although_the_first_list_or_answer_has_failed(
    answers,
) -> None:
    view = on_k3s()
    view.now = Unreachable("connection refused")
    async with reading(view, *answers) as made, asyncio.timeout(PATIENCE):
        while runtime_class(made) is None:
            view.wake()
            await asyncio.sleep(0)

        assert runtime_class(made) == "nvidia"


async def test_who_waits_for_the_first_list_waits_for_the_runtime_classes_too() -> None:
    said = asyncio.Event()
    async with reading(on_k3s(), after(said, NVIDIA)) as made:
        assert await made.first_list(0.1)
        assert runtime_class(made) is None
        first = await waiting(made.first_list(PATIENCE))
        said.set()
        assert await first

        assert runtime_class(made) == "nvidia"


@pytest.mark.parametrize("health", [Unreachable("HTTP 429"), Forbidden(("pods",), "no")])
async def test_starts_that_go_on_unchecked_wait_for_the_runtime_classes_too(health) -> None:
    view = on_k3s()
    view.now = health
    async with reading(view, NVIDIA) as made:
        assert not await made.first_list(PATIENCE)
        assert runtime_class(made) == "nvidia"


async def test_nobody_waits_for_runtime_classes_that_no_node_needs() -> None:
    async with reading(StillView(("Node", node("a", 1))), silence()) as made:
        async with asyncio.timeout(PATIENCE):
            assert await made.first_list(math.inf)
