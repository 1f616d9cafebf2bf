"""A start is followed from the first event of its pod on."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from kubespawner import KubeSpawner

from gpuspawner.kube.autoscaling import Event
from gpuspawner.kube.objects import strict_convert
from gpuspawner.launch.run import until_reachable
from gpuspawner.preflight.decision import Wait
from gpuspawner.spawner import in_front_of
from gpuspawner.start.refusal import Refusal
from gpuspawner.troubles.trouble import Exit, Kind, Trouble
from tests.unit.makers.hubs import A100
from tests.unit.makers.worlds import node, pod

TAKEN = (
    "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. "
    "Requested: 1, Available: 0, which is unexpected"
)


@pytest.mark.usefixtures("clock")
async def test_an_event_that_comes_before_the_hub_knows_that_the_pod_exists_is_heard(
    hub_with,
) -> None:
    hub = hub_with(("Node", node("a", 1)))
    spawner: Any = hub.spawner(accelerators={"a100": A100})
    spawner.user_options = {"accelerator": "a100"}
    assert spawner.run_pre_spawn_hook() is None
    named = {"name": spawner.pod_name, "namespace": spawner.namespace}
    pod = {"metadata": {**named, "uid": "u"}, "spec": {}, "status": {"phase": "Pending"}}
    refused = {
        "metadata": {**named, "name": "e", "resourceVersion": "1"},
        "involvedObject": {"name": spawner.pod_name, "uid": "u"},
        "reason": "UnexpectedAdmissionError",
        "type": "Warning",
        "message": TAKEN,
    }
    run = spawner.gpuspawner_gates._new_run()
    run.sent.set()
    spawner.gpuspawner_stock.known_pod = lambda: pod

    following = asyncio.create_task(run.until_failed())
    await asyncio.sleep(0)
    hub.view.events.hear(strict_convert(refused, Event))
    run.created.set()

    with pytest.raises(Refusal, match="The GPU was taken just before your server got it"):
        await asyncio.wait_for(following, 3600)


@pytest.mark.usefixtures("clock")
async def test_a_start_goes_on_if_following_it_fails_by_itself(hub_with, caplog) -> None:
    hub = hub_with(("Node", node("a", 1)))
    spawner: Any = hub.spawner(accelerators={"a100": A100})
    spawner.user_options = {"accelerator": "a100"}
    assert spawner.run_pre_spawn_hook() is None
    run = spawner.gpuspawner_gates._new_run()
    run.sent.set()
    run.created.set()

    def known_pod() -> None:
        raise KeyError("a bug")

    spawner.gpuspawner_stock.known_pod = known_pod

    with pytest.raises(TimeoutError):  # whether its pod gets a node is still asked
        await asyncio.wait_for(run.until_failed(), 60)
    assert caplog.text.count("its start goes on") == 1


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("nodes", [(), ("a",)])
async def test_a_start_ends_with_its_pod_before_and_after_it_gets_a_node(hub_with, nodes) -> None:
    hub = hub_with(("Node", node("a", 1, providerID="aws:///z/i-1")), ("Pod", pod("x", on="a")))
    spawner: Any = hub.spawner(accelerators={"a100": A100})
    spawner.user_options = {"accelerator": "a100"}
    if (begun := spawner.run_pre_spawn_hook()) is not None:
        await begun
    assert isinstance(spawner.gpuspawner_gates.attempt.decision, Wait)
    run = spawner.gpuspawner_gates._new_run()
    run.sent.set()
    run.created.set()
    named = {"name": spawner.pod_name, "namespace": spawner.namespace, "uid": "u"}

    following = asyncio.create_task(run.until_failed())
    for name in ("", *nodes):
        hub.view.put("Pod", {**pod("a", on=name), "metadata": named})
        await asyncio.sleep(1)
    hub.view.state.remove("Pod", spawner.namespace, spawner.pod_name)
    hub.view.wake()

    with pytest.raises(Refusal, match="was deleted while it was starting"):
        await asyncio.wait_for(following, 10)


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """The port of a server that accepts connections."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        number: int = server.sockets[0].getsockname()[1]
        yield number


async def test_a_server_that_listens_is_up(port: int) -> None:
    await until_reachable(f"http://127.0.0.1:{port}", 60)


async def test_a_server_that_listens_only_later_is_waited_for(port: int) -> None:
    waiting = asyncio.create_task(until_reachable(f"http://127.0.0.2:{port}", 60))
    await asyncio.sleep(0)
    late = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.2", port)
    async with late:
        await asyncio.wait_for(waiting, 60)


@pytest.mark.parametrize("host", ["127.0.0.3", "no-such-host.invalid", "a" * 64])
async def test_a_server_that_never_listens_is_refused(port: int, host: str) -> None:
    with pytest.raises(Refusal, match="Your server is running but doesn't answer"):
        await until_reachable(f"http://{host}:{port}", 0.05)


async def test_a_server_that_crashes_again_and_again_is_not_called_silent(port: int) -> None:
    said = Exit(code=1, last_words="ImportError: torch")
    crashed = Trouble(Kind.CRASHED, attempts=2, exit=said)
    with pytest.raises(Refusal, match=r"crashed while it was starting\..*ImportError: torch"):
        await until_reachable(f"http://127.0.0.3:{port}", 0.05, lambda: (crashed,))


async def test_a_crash_of_which_the_hub_hears_only_after_its_time_out_is_told(port: int) -> None:
    """As by a hub that stood still: its time-out ends before it reads any news."""
    known: list[Trouble] = []
    crashed = Trouble(Kind.CRASHED, exit=Exit(code=1, last_words="ImportError: torch"))
    asyncio.get_running_loop().call_later(0.3, known.append, crashed)

    with pytest.raises(Refusal, match=r"crashed while it was starting\..*ImportError: torch"):
        await until_reachable(f"http://127.0.0.3:{port}", 0.05, lambda: tuple(known))


async def test_a_server_that_listens_before_the_last_news_is_up(port: int) -> None:
    waiting = asyncio.create_task(until_reachable(f"http://127.0.0.4:{port}", 0.05))
    await asyncio.sleep(0.3)
    late = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.4", port)
    async with late:
        await asyncio.wait_for(waiting, 60)


async def test_a_start_that_kubespawner_gives_up_is_told_by_what_its_container_did(
    hub_with,
) -> None:
    spawner: Any = hub_with().spawner(accelerators={"a100": A100})
    crashed = Trouble(Kind.CRASHED, exit=Exit(code=1, last_words="ImportError: torch"))
    run = spawner.gpuspawner_gates._new_run()
    run.created.set()
    run._launch = SimpleNamespace(troubles=(crashed,), node="gpu-7")
    given_up = TimeoutError("pod jhub/jupyter-alice did not start in 60 seconds!")
    spawner.gpuspawner_stock.run_start = AsyncMock(side_effect=given_up)

    message = r"crashed while it was starting\..*ImportError: torch"
    with pytest.raises(Refusal, match=message) as refused:
        await run.until_it_listens()
    assert refused.value.details == "on gpu-7"


async def test_the_log_names_the_node_of_a_server_that_never_listens(hub_with) -> None:
    spawner: Any = hub_with().spawner(accelerators={"a100": A100}, http_timeout=0)
    run = spawner.gpuspawner_gates._new_run()
    run._launch = SimpleNamespace(troubles=(), node="gpu-7")
    spawner.gpuspawner_stock.run_start = AsyncMock(return_value="http://127.0.0.5:9")

    with pytest.raises(Refusal) as refused:
        await run.until_it_listens()
    assert refused.value.details == "on gpu-7"


class BehindAnIngress(KubeSpawner):
    async def start(self) -> str:
        await super().start()
        return "http://ingress.example.org"


async def test_a_class_may_return_another_address_than_one_that_the_hub_reaches(hub_with) -> None:
    spawner: Any = hub_with(("Node", node("a", 1))).spawner(
        in_front_of(BehindAnIngress), http_timeout=0
    )
    spawner.run_pre_spawn_hook()
    spawner.gpuspawner_stock.run_start = AsyncMock(return_value="http://127.0.0.5:9")

    assert await spawner.start() == "http://ingress.example.org"


@pytest.mark.parametrize(
    "url", [None, ("127.0.0.1", 1), "", "unix+http://%2Fsocket", "http://[", "http://a:99999"]
)
async def test_another_kind_of_address_is_left_to_the_hub(url: object) -> None:
    await until_reachable(url, 0.05)
