"""When a start whose pod gets no node, or loses it, is given up."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from gpuspawner.cluster.pod_events import Heard
from gpuspawner.kube.autoscaling import Event
from gpuspawner.kube.nodes import Taint
from gpuspawner.kube.objects import strict_convert
from gpuspawner.kueue.objects import KueueObjects
from gpuspawner.launch import limits
from gpuspawner.launch.farewells import Farewells
from gpuspawner.launch.trouble import Kind
from gpuspawner.launch.usual import UsualSteps
from gpuspawner.policy import Grant
from gpuspawner.preflight.decision import Start, Wait
from gpuspawner.scaling.outlook import CanScaleUp
from gpuspawner.scheduling.node_images import NodeImages
from gpuspawner.scheduling.rules import DEFAULT_RULES
from gpuspawner.spawn.launching import Launching
from gpuspawner.spawn.refusal import Refusal
from gpuspawner.spawn.story import Story

pytestmark = pytest.mark.each_python


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuspawner.spawn.sight.AGAIN_SECONDS", 0.005)


async def changed(_: float) -> None:
    await asyncio.sleep(0)


def launching(
    pod: object,
    starting: float,
    left: float = 60.0,
    nodes: dict[str, object] | None = None,
    queues: KueueObjects | None = None,
) -> Launching:
    """Return a start whose pod the hub sees as it is given, and never another one."""
    state = SimpleNamespace(
        images=NodeImages(),
        pods={},
        unbound_pods={},
        undecodable=(),
        nodes=nodes or {},
        rules=DEFAULT_RULES,
    )
    view = SimpleNamespace(
        changed=changed, state=state, in_touch=lambda: bool(nodes), queues=queues or KueueObjects()
    )
    runtime: Any = SimpleNamespace(
        view=view,
        preflight=SimpleNamespace(reservations=SimpleNamespace(release=set().add)),
        avoided=None,
        farewells=Farewells(),
        usual_steps=UsualSteps(),
    )
    proposal = SimpleNamespace(key=("jhub", "jupyter-ann"), grant=Grant(), decoded=None)
    attempt: Any = SimpleNamespace(
        choice=SimpleNamespace(proposal=proposal),
        decision=Start(Grant()),
        starting=starting,
        seconds_for_a_node=0,
        seconds_left=left,
        may_queue=False,
    )
    spawner: Any = SimpleNamespace(
        user=SimpleNamespace(name="ann"),
        scheduling_timeout=0.01,
        preparing_timeout=60.0,
        http_timeout=30,
        preflight="enforce",
    )
    stock: Any = SimpleNamespace(known_pod=lambda: pod, knows_pods=lambda: True)
    return Launching(spawner, stock, runtime, Story(), attempt)


async def judge() -> Start | Wait:
    """Nothing is wrong with the pod."""
    return Start(Grant())


async def judge_wait() -> Start | Wait:
    return Wait(Grant(), CanScaleUp(1, 2, 3))


def pending(**condition: str) -> dict[str, Any]:
    conditions = [{"type": "PodScheduled", "status": "False", **condition}] if condition else []
    return {"metadata": {"uid": "u"}, "status": {"phase": "Pending", "conditions": conditions}}


NO_ROOM = pending(reason="Unschedulable", message="0/1 nodes are available: 1 Too many pods.")


async def test_a_pod_that_came_and_went_unseen_ends_the_start() -> None:
    unseen = launching(None, starting=0.01)

    with pytest.raises(Refusal, match="hasn't given your server a machine in time"):
        await asyncio.wait_for(unseen.until_failed(Heard(), judge), 5)


@pytest.mark.parametrize(
    ("pod", "judge"),
    [(pending(), judge), (NO_ROOM, judge_wait)],
    ids=["kube-scheduler says nothing", "a node comes instead of the room"],
)
async def test_a_pod_that_may_still_get_a_node_has_longer(pod, judge) -> None:
    start = launching(pod, starting=60.0)

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(start.until_failed(Heard(), judge), 0.1)


async def test_a_pod_whose_autoscaler_says_that_a_node_comes_has_longer() -> None:
    heard = Heard()
    heard.put(
        event_of_pod("TriggeredScaleUp", "pod triggered scale-up: [{gpu 0->1 (max: 4)}]", "Normal")
    )

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(launching(NO_ROOM, 60.0).until_failed(heard, judge), 0.1)


@pytest.mark.parametrize(
    ("pod", "judge", "starting", "left"),
    [
        (NO_ROOM, judge, 60.0, 60.0),
        (pending(), judge, 0.02, 60.0),
        (NO_ROOM, judge_wait, 60.0, 0.02),
    ],
    ids=["kube-scheduler says no", "it says nothing for long", "no node comes"],
)
async def test_a_pod_that_gets_no_node_ends_the_start(pod, judge, starting, left) -> None:
    start = launching(pod, starting, left)

    with pytest.raises(Refusal, match="hasn't given your server a machine in time"):
        await asyncio.wait_for(start.until_failed(Heard(), judge), 5)


@pytest.mark.parametrize(
    ("container", "was_ready", "goes_on"),
    [("setup", True, True), ("setup", False, False), ("notebook", True, False)],
)
async def test_only_the_server_s_container_counts_once_all_have_been_ready(
    container, was_ready, goes_on
) -> None:
    done = {"name": container, "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
    pod = {
        "metadata": {"uid": "u"},
        "spec": {"restartPolicy": "OnFailure", "containers": [{"name": container}]},
        "status": {"phase": "Running", "containerStatuses": [done]},
    }
    start = launching(pod, starting=60.0)
    start.was_ready = was_ready

    with pytest.raises(TimeoutError if goes_on else Refusal):
        await asyncio.wait_for(start.until_failed(Heard(), judge), 0.1)


@pytest.mark.parametrize(("was_ready", "goes_on"), [(True, True), (False, False)])
async def test_the_time_to_answer_is_none_of_the_containers_start(was_ready, goes_on) -> None:
    runs = {"name": "notebook", "state": {"running": {}}, "ready": was_ready}
    pod = {
        "metadata": {"uid": "u"},
        "spec": {"containers": [{"name": "notebook"}]},
        "status": {"phase": "Running", "containerStatuses": [runs]},
    }
    start = launching(pod, starting=0.01)
    start.was_ready = was_ready

    with pytest.raises(TimeoutError if goes_on else Refusal):
        await asyncio.wait_for(start.until_failed(Heard(), judge), 0.1)


TAINTED = (Taint("node.kubernetes.io/unreachable", "", "NoExecute"),)


@pytest.mark.parametrize(("taints", "is_lost"), [((), False), (TAINTED, True)])
async def test_a_node_that_is_back_is_not_lost(taints, is_lost, monkeypatch) -> None:
    monkeypatch.setitem(limits._SECONDS, Kind.NODE_LOST, 0.01)
    pod = {"metadata": {"uid": "u"}, "spec": {"nodeName": "t4-0"}, "status": {"phase": "Pending"}}
    start = launching(pod, 60.0, nodes={"t4-0": SimpleNamespace(taints=taints)})
    start._view.state.pods["jhub/jupyter-ann"] = pod
    heard = Heard()
    heard.put(event_of_pod("NodeNotReady", "Node is not ready"))

    ended = Refusal if is_lost else TimeoutError
    with pytest.raises(ended):
        await asyncio.wait_for(start.until_failed(heard, judge), 0.2)


def event_of_pod(reason: str, message: str, type_: str = "Warning") -> Event:
    plain = {
        "metadata": {"name": "e"},
        "involvedObject": {"uid": "u"},
        "source": {"component": "cluster-autoscaler"},
        "reason": reason,
        "message": message,
        "type": type_,
        "lastTimestamp": "2026-11-23T12:00:00Z",
    }
    return strict_convert(plain, Event)
