"""When a start whose pod gets no node, or loses it, is given up."""

import asyncio
import copy
import logging
import time
from math import inf
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from gpuspawner.cluster.kueue_objects import KueueObjects
from gpuspawner.cluster.pod_events import Heard
from gpuspawner.kube.kueue import QUEUE
from gpuspawner.kube.nodes import Taint
from gpuspawner.launch.launching import Launching, refused
from gpuspawner.launch.progress import Progress, Teller
from gpuspawner.messages import Message
from gpuspawner.offers.grant import Grant
from gpuspawner.preflight.decision import Reason, Refuse, Start, Wait
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.scaling.outlook import CanScaleUp
from gpuspawner.scaling.usual_times import longest_wait
from gpuspawner.scheduling.node_images import NodeImages
from gpuspawner.scheduling.rules import DEFAULT_RULES
from gpuspawner.start.refusal import Refusal
from gpuspawner.start.source import Choice
from gpuspawner.troubles.ending import Farewells
from gpuspawner.troubles.giving_up import StartPhase, late
from gpuspawner.troubles.steps import UsualSteps
from tests.unit.makers.starts import event

pytestmark = pytest.mark.usefixtures("clock")

FITS = Start(Grant())
COMES = Wait(Grant(), CanScaleUp(1, 2, 3))
SCHEDULING, STARTING, LEFT = 60, 300, 600
"""Seconds: the limit for a node, the time that containers may take, and what is left in all."""


async def decide(_spawner, choice, question, admission):
    """Ask as a start with ``preflight`` ``"enforce"`` does, but word no refusal."""
    decision = question(choice.proposal, admission)
    if isinstance(decision, Refuse):
        raise Refusal(Message.of(decision.reason.value), reason=decision.reason.value)
    return decision


DECIDE = "gpuspawner.launch.launching.decide"


@pytest.fixture(autouse=True)
def _few_words(monkeypatch):
    monkeypatch.setattr(DECIDE, decide)


def launching(
    pod,
    nodes=None,
    *,
    judged=FITS,
    question=None,
    in_touch=None,
    lost_contact=bool,
    starting=STARTING,
    left=LEFT,
    queue="",
):
    """Return a start whose pod the hub sees as it is given, and never another one."""
    is_seen = in_touch or (lambda: bool(nodes))
    state = SimpleNamespace(
        images=NodeImages(),
        pods={},
        unbound_pods={"jhub/jupyter-ann": pod},
        undecodable=(),
        nodes=nodes or {},
        rules=DEFAULT_RULES,
    )
    view = SimpleNamespace(
        changed=asyncio.sleep,
        state=state,
        in_touch=is_seen,
        lost_contact=lost_contact,
        queues=KueueObjects(),
    )
    runtime = SimpleNamespace(
        view=view,
        preflight=SimpleNamespace(
            reservations=SimpleNamespace(release=set().add),
            decider=SimpleNamespace(check_sent=lambda _: judged),
        ),
        avoided=None,
        dry_runs=SimpleNamespace(for_start=lambda _: None),
        farewells=Farewells(),
        usual_steps=UsualSteps(),
    )
    proposal = Proposal("jhub", "jupyter-ann", {"metadata": {"labels": {QUEUE: queue}}}, Grant())
    attempt = SimpleNamespace(
        choice=Choice(proposal),
        decision=Start(Grant()),
        starting=starting,
        seconds_for_a_node=0,
        seconds_left=left,
        may_queue=False,
    )
    spawner = SimpleNamespace(
        user=SimpleNamespace(name="ann"),
        _log_name="ann",
        log=logging.getLogger("jupyterhub"),
        scheduling_timeout=SCHEDULING,
        preparing_timeout=3600,
        http_timeout=30,
        preflight="enforce",
        gpuspawner_stock=SimpleNamespace(known_pod=lambda: pod, knows_pods=lambda: True),
    )
    return Launching(spawner, runtime, Progress(), attempt, question)


async def seconds_until_failed(start, *events, most=1200):
    """Return after how many seconds, to the ten, a start is given up; infinity if it goes on."""
    heard, began = Heard(), time.monotonic()
    for it in events:
        heard.put(it)
    with pytest.raises((Refusal, TimeoutError)) as ended:
        await asyncio.wait_for(start.until_failed(heard), most)
    return inf if ended.type is TimeoutError else round(time.monotonic() - began, -1)


def pending(**condition):
    conditions = [{"type": "PodScheduled", "status": "False", **condition}] if condition else []
    return {"metadata": {"uid": "u"}, "status": {"phase": "Pending", "conditions": conditions}}


NO_ROOM = pending(reason="Unschedulable", message="0/1 nodes are available: 1 Too many pods.")


async def test_a_pod_that_came_and_went_unseen_ends_the_start():
    with pytest.raises(Refusal, match="didn't find a machine for your server in time"):
        await launching(None).until_failed(Heard())


@pytest.mark.parametrize(
    ("pod", "judged", "seconds"),
    [
        pytest.param(NO_ROOM, FITS, SCHEDULING, id="kube-scheduler says no"),
        pytest.param(pending(), FITS, STARTING, id="it says nothing"),
        pytest.param(NO_ROOM, COMES, SCHEDULING + LEFT, id="a node comes instead of the room"),
    ],
)
async def test_a_pod_that_may_still_get_a_node_has_longer(pod, judged, seconds):
    assert await seconds_until_failed(launching(pod, judged=judged)) == seconds


@pytest.mark.parametrize("unlimited", [{"left": 10.0**8, "queue": "gpus"}, {"left": inf}])
@pytest.mark.parametrize(
    ("starting", "scale_up", "seconds"),
    [
        (STARTING, COMES.scale_up, longest_wait(COMES.scale_up)),
        (STARTING, CanScaleUp(1, 2, 15), 2 * 15 * 60 + 60),
        (2000, COMES.scale_up, 2000),
    ],
    ids=["usual", "a slow pool", "a long start_timeout"],
)
async def test_a_node_that_is_to_come_has_a_limit_also_if_the_hub_has_none(
    starting, scale_up, seconds, unlimited
):
    judged = Wait(Grant(), scale_up)
    start = launching(NO_ROOM, judged=judged, starting=starting, **unlimited)

    assert await seconds_until_failed(start, most=3000) == SCHEDULING + seconds


async def test_an_event_that_a_node_comes_gives_the_usual_time_after_a_queue():
    coming = event("TriggeredScaleUp", "pod triggered scale-up: [{gpu 0->1 (max: 4)}]", uid="u")
    start = launching(NO_ROOM, left=10.0**8, queue="gpus")

    assert await seconds_until_failed(start, coming, most=3000) == SCHEDULING + 20 * 60 + 60


async def test_without_a_queue_a_node_may_come_for_as_long_as_the_hub_waits():
    start = launching(NO_ROOM, judged=COMES, left=1800)

    assert await seconds_until_failed(start, most=3000) == SCHEDULING + 1800


BOUND = {"spec": {"nodeName": "node-1"}}


@pytest.mark.parametrize("judged", [FITS, Refuse(Grant(), Reason.BUSY)], ids=["fits", "busy"])
@pytest.mark.parametrize("is_late", [True, False], ids=["late", "in time"])
@pytest.mark.parametrize("first", ["the reflector", "the view"])
async def test_a_pod_that_gets_its_node_while_it_is_judged_goes_on(
    judged, is_late, first, monkeypatch
):
    """What is refused has to be worded, and that may take seconds."""
    pod = copy.deepcopy(NO_ROOM)
    question = None if is_late else lambda: judged if isinstance(judged, Refuse) else None
    start = launching(pod, judged=judged, question=question)

    async def slowly(*asked):
        if first == "the view":
            asyncio.get_running_loop().call_later(3, pod.update, BOUND)
            start._runtime.view.state.pods["jhub/jupyter-ann"] = SimpleNamespace(terminating=False)
        else:
            pod.update(BOUND)
        await asyncio.sleep(2)
        return await decide(*asked)

    monkeypatch.setattr(DECIDE, slowly)

    assert await seconds_until_failed(start) == inf


async def test_a_pod_whose_autoscaler_says_that_a_node_comes_has_longer():
    coming = event("TriggeredScaleUp", "pod triggered scale-up: [{gpu 0->1 (max: 4)}]", uid="u")

    assert await seconds_until_failed(launching(NO_ROOM), coming) == SCHEDULING + LEFT


def running(*statuses, **spec):
    """Return a pod whose containers have these statuses; the first is the server."""
    named = [{"name": it} for it in ("notebook", "setup")]
    return {
        "metadata": {"uid": "u"},
        "spec": {"restartPolicy": "OnFailure", "containers": named, **spec},
        "status": {"phase": "Running", "containerStatuses": list(statuses)},
    }


@pytest.mark.parametrize(
    ("container", "was_ready", "seconds"),
    [("setup", True, inf), ("setup", False, 0), ("notebook", True, 0)],
)
async def test_only_the_server_s_container_counts_once_all_have_been_ready(
    container, was_ready, seconds
):
    done = {"name": container, "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
    start = launching(running(done))
    start.was_ready = was_ready

    assert await seconds_until_failed(start) == seconds


@pytest.mark.parametrize(
    ("crashed", "reason"),
    [("setup", "not-answered"), ("notebook", "crashed"), ("lab", "not-answered")],
)
@pytest.mark.parametrize("server", ["notebook", "renamed"])
async def test_a_server_that_never_answers_has_not_crashed_because_another_container_has(
    crashed, reason, server
):
    crashed = crashed.replace("notebook", server)
    ends = {"setup": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
    lasts = {"lastState": {"terminated": {"exitCode": 1, "reason": "Error"}}, "restartCount": 1}
    setup, *others = (
        {"name": it, "state": ends.get(it, {"running": {}}), "ready": True}
        | (lasts if it == crashed else {})
        for it in ("setup", server, "lab")
    )
    spec = {
        "initContainers": [{"name": "setup"}],
        "containers": [{"name": server}, {"name": "lab"}],
    }
    pod = running(*others, **spec)
    pod["status"]["initContainerStatuses"] = [setup]
    start = launching(pod)
    start.was_ready = True

    assert await seconds_until_failed(start) == inf
    assert refused(late(start.troubles, StartPhase.ANSWERED)).slug == reason


@pytest.mark.parametrize(("was_ready", "seconds"), [(True, inf), (False, STARTING)])
async def test_the_time_to_answer_is_none_of_the_containers_start(was_ready, seconds):
    runs = {"name": "notebook", "state": {"running": {}}, "ready": was_ready}
    start = launching(running(runs, containers=[{"name": "notebook"}]))
    start.was_ready = was_ready

    assert await seconds_until_failed(start) == seconds


ON_T4 = {"metadata": {"uid": "u"}, "spec": {"nodeName": "t4-0"}, "status": {"phase": "Pending"}}
NOT_READY = event("NodeNotReady", "Node is not ready", type_="Warning", uid="u")
TAINTED = (Taint("node.kubernetes.io/unreachable", "", "NoExecute"),)


@pytest.mark.parametrize(("taints", "seconds"), [((), inf), (TAINTED, 60)])
async def test_a_node_that_is_back_is_not_lost(taints, seconds):
    start = launching(ON_T4, {"t4-0": SimpleNamespace(taints=taints)})

    assert await seconds_until_failed(start, NOT_READY) == seconds


async def test_a_node_that_was_back_before_contact_was_lost_is_not_lost():
    began, healthy = time.monotonic(), SimpleNamespace(taints=())

    def in_touch():
        return time.monotonic() - began < 120

    start = launching(ON_T4, {"t4-0": healthy}, in_touch=in_touch)

    assert await seconds_until_failed(start, NOT_READY) == inf


@pytest.mark.parametrize(
    ("can_read", "seconds"), [(False, inf), (True, 60)], ids=["forbidden", "deleted"]
)
async def test_an_event_alone_does_not_prove_for_good_that_a_node_is_lost(can_read, seconds):
    start = launching(ON_T4, in_touch=lambda: can_read)

    assert await seconds_until_failed(start, NOT_READY) == seconds


async def test_a_container_of_which_the_kubelet_knows_nothing_proves_that_a_node_is_lost():
    unknown = {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}}
    start = launching(running({"name": "notebook", "state": unknown}, nodeName="t4-0"))

    assert await seconds_until_failed(start) == 60


NO_SECRET = {"reason": "CreateContainerConfigError", "message": 'secret "a" not found'}
NEEDS_SECRET = running({"name": "notebook", "state": {"waiting": NO_SECRET}})


@pytest.mark.parametrize(
    ("pod", "seconds"),
    [(NEEDS_SECRET, 30), (NO_ROOM, SCHEDULING), (None, STARTING)],
    ids=["trouble", "phase", "unseen"],
)
async def test_no_time_counts_while_contact_with_the_api_server_is_lost(pod, seconds):
    began = time.monotonic()

    def lost_contact():
        return 10 <= time.monotonic() - began < 500

    start = launching(pod, lost_contact=lost_contact)

    assert await seconds_until_failed(start) == seconds + 490


# Why a pod gets no node

TAKEN = Refuse(Grant(), Reason.TAKEN)


async def test_a_pod_that_gets_no_node_ends_the_start_with_that_reason():
    began = time.monotonic()

    def question():
        return TAKEN if time.monotonic() - began > 9 else None

    with pytest.raises(Refusal, match="taken"):
        await launching(NO_ROOM, question=question).until_failed(Heard())
    assert round(time.monotonic() - began) == 10


async def test_what_has_become_of_the_pod_counts_before_why_it_gets_no_node():
    evicted = {**NO_ROOM, "status": {"phase": "Failed", "reason": "Evicted"}}

    with pytest.raises(Refusal, match="needed your server's place"):
        await launching(evicted, question=lambda: TAKEN).until_failed(Heard())


async def test_the_log_names_the_node_of_a_pod_that_became_no_server():
    status = {"phase": "Failed", "reason": "OutOfnvidia.com/gpu"}
    pod = {**NO_ROOM, "spec": {"nodeName": "gpu-7"}, "status": status}

    with pytest.raises(Refusal) as refused:
        await launching(pod).until_failed(Heard())

    assert "on gpu-7" in refused.value.details
    assert "gpu-7" not in refused.value.text


async def test_a_pod_is_asked_about_its_node_on_if_telling_of_it_fails_by_itself(
    caplog, monkeypatch
):
    question = Mock(side_effect=[None, None, TAKEN])
    monkeypatch.setattr(Teller, "tell", Mock(side_effect=KeyError("a bug")))

    with pytest.raises(Refusal, match="taken"):
        await launching(NO_ROOM, question=question).until_failed(Heard())

    assert caplog.text.count("its start goes on untold") == 1


async def test_a_pod_is_followed_on_if_asking_about_its_node_fails_by_itself(caplog):
    question = Mock(side_effect=KeyError("a bug"))

    assert await seconds_until_failed(launching(NO_ROOM, question=question)) == SCHEDULING
    assert caplog.text.count("ann's start goes on unchecked") == 1
