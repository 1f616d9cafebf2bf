"""A start is followed from the first event of its pod on."""

import asyncio
from types import SimpleNamespace
from unittest.mock import AsyncMock, Mock

import pytest
from kubespawner import KubeSpawner

from gpuspawner.kube.autoscaling import Event
from gpuspawner.kube.objects import strict_convert
from gpuspawner.launch.observed_pod import Seen
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


@pytest.fixture
def run_on(hub_with):
    """Return a function that lets a start on a cluster send its pod."""

    async def made(*objects):
        hub = hub_with(*objects)
        spawner = hub.spawner(accelerators={"a100": A100})
        spawner.user_options = {"accelerator": "a100"}
        if (begun := spawner.run_pre_spawn_hook()) is not None:
            await begun
        run = spawner.gpuspawner_gates._new_run()
        run.sent.set()
        return hub, spawner, run

    return made


FREE = "Node", node("a", 1)


@pytest.mark.usefixtures("clock")
async def test_an_event_that_comes_before_the_hub_knows_that_the_pod_exists_is_heard(run_on):
    hub, spawner, run = await run_on(FREE)
    named = {"name": spawner.pod_name, "namespace": spawner.namespace}
    pod = {"metadata": {**named, "uid": "u"}, "spec": {}, "status": {"phase": "Pending"}}
    refused = {
        "metadata": {**named, "name": "e", "resourceVersion": "1"},
        "involvedObject": {"name": spawner.pod_name, "uid": "u"},
        "reason": "UnexpectedAdmissionError",
        "type": "Warning",
        "message": TAKEN,
    }
    spawner.gpuspawner_stock.known_pod = lambda: pod

    following = asyncio.create_task(run.until_failed())
    await asyncio.sleep(0)
    hub.view.events.hear(strict_convert(refused, Event))
    run.created.set()

    with pytest.raises(Refusal, match="The GPU was taken just before your server got it"):
        await asyncio.wait_for(following, 3600)


@pytest.mark.usefixtures("clock")
async def test_a_start_goes_on_if_following_it_fails_by_itself(run_on, caplog):
    _, spawner, run = await run_on(FREE)
    run.created.set()
    spawner.gpuspawner_stock.known_pod = Mock(side_effect=KeyError("a bug"))

    with pytest.raises(TimeoutError):  # whether its pod gets a node is still asked
        await asyncio.wait_for(run.until_failed(), 60)
    assert caplog.text.count("its start goes on") == 1


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("nodes", [(), ("a",)])
async def test_a_start_ends_with_its_pod_before_and_after_it_gets_a_node(run_on, nodes):
    full = ("Node", node("a", 1, providerID="aws:///z/i-1")), ("Pod", pod("x", on="a"))
    hub, spawner, run = await run_on(*full)
    assert isinstance(spawner.gpuspawner_gates.attempt.decision, Wait)
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
async def port():
    """The port of a server that accepts connections."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        number = server.sockets[0].getsockname()[1]
        yield number


@pytest.mark.parametrize(
    ("host", "seconds", "after"),
    [("127.0.0.2", 60, 0), ("127.0.0.4", 0.05, 0.3)],
    ids=["in its time", "before the last news"],
)
async def test_a_server_that_listens_only_later_is_waited_for(port, host, seconds, after):
    waiting = asyncio.create_task(until_reachable(f"http://{host}:{port}", seconds))
    await asyncio.sleep(after)
    late = await asyncio.start_server(lambda _, writer: writer.close(), host, port)
    async with late:
        await asyncio.wait_for(waiting, 60)


@pytest.mark.parametrize("host", ["127.0.0.3", "no-such-host.invalid", "a" * 64])
async def test_a_server_that_never_listens_is_refused(port, host):
    with pytest.raises(Refusal, match="Your server is running but doesn't answer"):
        await until_reachable(f"http://{host}:{port}", 0.05)


IMPORT = r"crashed while it was starting\..*ImportError: torch"
CRASHED = Trouble(Kind.CRASHED, attempts=2, exit=Exit(code=1, last_words="ImportError: torch"))


async def test_a_crash_of_which_the_hub_hears_only_after_its_time_out_is_told(port):
    """As by a hub that stood still: its time-out ends before it reads any news."""
    known = []
    asyncio.get_running_loop().call_later(0.3, known.append, CRASHED)

    with pytest.raises(Refusal, match=IMPORT):
        await until_reachable(f"http://127.0.0.3:{port}", 0.05, lambda: tuple(known))


async def test_a_start_that_kubespawner_gives_up_is_told_by_what_its_container_did(hub_with):
    spawner = hub_with().spawner(accelerators={"a100": A100})
    run = spawner.gpuspawner_gates._new_run()
    run.created.set()
    run._launch = SimpleNamespace(troubles=(CRASHED,), seen=Seen(node="gpu-7"))
    given_up = TimeoutError("pod jhub/jupyter-alice did not start in 60 seconds!")
    spawner.gpuspawner_stock.run_start = AsyncMock(side_effect=given_up)

    with pytest.raises(Refusal, match=IMPORT) as refused:
        await run.until_it_listens()
    assert refused.value.details == "on gpu-7"


async def test_the_log_names_the_node_of_a_server_that_never_listens(hub_with):
    spawner = hub_with().spawner(accelerators={"a100": A100}, http_timeout=0)
    run = spawner.gpuspawner_gates._new_run()
    run._launch = SimpleNamespace(troubles=(), seen=Seen(node="gpu-7"))
    spawner.gpuspawner_stock.run_start = AsyncMock(return_value="http://127.0.0.5:9")

    with pytest.raises(Refusal) as refused:
        await run.until_it_listens()
    assert refused.value.details == "on gpu-7"


class BehindAnIngress(KubeSpawner):
    async def start(self):
        await super().start()
        return "http://ingress.example.org"


async def test_a_class_may_return_another_address_than_one_that_the_hub_reaches(hub_with):
    spawner = hub_with(("Node", node("a", 1))).spawner(in_front_of(BehindAnIngress), http_timeout=0)
    spawner.run_pre_spawn_hook()
    spawner.gpuspawner_stock.run_start = AsyncMock(return_value="http://127.0.0.5:9")

    assert await spawner.start() == "http://ingress.example.org"


@pytest.mark.parametrize(
    "url", [None, ("127.0.0.1", 1), "", "unix+http://%2Fsocket", "http://[", "http://a:99999"]
)
async def test_another_kind_of_address_is_left_to_the_hub(url):
    await until_reachable(url, 0.05)
