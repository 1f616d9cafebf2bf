"""The wait of one start, without a hub."""

import asyncio
import logging
import time
from contextvars import copy_context
from datetime import timedelta
from functools import partial
from types import SimpleNamespace

import pytest
from jupyterhub import orm
from jupyterhub.objects import Server
from jupyterhub.utils import utcnow
from sqlalchemy import inspect, text

from gpuspawner import GPUSpawner, language
from gpuspawner.cluster.health import Live, Stale
from gpuspawner.compat import database
from gpuspawner.kube.kueue import ADMISSION
from gpuspawner.launch import failed_starts
from gpuspawner.line import in_line
from gpuspawner.line.queue_config import QueueRules
from gpuspawner.line.waiting_line import WaitingLine
from gpuspawner.messages import Message
from gpuspawner.preflight.decider import Decider
from gpuspawner.preflight.decision import Reason
from gpuspawner.reservations.place_in_line import KeptPlace, Wish
from gpuspawner.reservations.reservations import LIFETIME_SECONDS
from gpuspawner.start.attempt import TurnToStart
from gpuspawner.start.policing import LIMIT, UNCOUNTED
from gpuspawner.start.refusal import Refusal
from gpuspawner.use.record import Record
from localcluster.kueue.objects import local_queue
from tests.unit.makers.courses import Course, Train
from tests.unit.makers.hubs import TAINT, TOLERATION, tolerating
from tests.unit.makers.kueue_worlds import flavor, known, pool
from tests.unit.makers.waiters import FULL, Waiting
from tests.unit.makers.worlds import NAMESPACE, labelled, named_node, node, pod, proposal, settle

pytestmark = pytest.mark.usefixtures("clock")


async def test_a_start_waits_and_goes_on_with_its_options_alone(waiting):
    alice = await waiting()
    assert alice.place.said.text == "You are next in line. You are waiting for 1 × A100."

    alice.hub.view.remove_pod("x")

    await alice.starts()
    assert not alice.place.is_on
    assert "wait" not in alice.spawner.user_options
    assert alice.spawner.gpuspawner_gates.attempt is not None


async def test_the_time_in_line_is_no_time_of_the_server(waiting):
    """The hub notes both times before the wait; the idle culler stops servers by them."""
    alice = await waiting()
    before = utcnow(with_tz=False)
    hours_ago = before - timedelta(hours=3)
    alice.store(started=hours_ago, last_activity=hours_ago)

    alice.hub.view.remove_pod("x")
    await alice.starts()

    assert alice.row.started >= before
    assert alice.row.last_activity >= before


def away_for(monkeypatch, row, reads):
    """Let a function find the hub's database away until the list that this returns is empty."""
    does, faults = getattr(*reads), ["of_what"]

    def fails(*given):
        for fault in faults:
            inspect(row).session.execute(text(f"SELECT {fault}"))
        return does(*given)

    monkeypatch.setattr(*reads, fails)
    monkeypatch.setattr(database, "_takes_changes", lambda _: not faults)
    return faults


@pytest.mark.parametrize("reads", [(TurnToStart, "admit"), (in_line, "line")])
@pytest.mark.usefixtures("no_threads")
async def test_who_waits_keeps_the_place_if_the_database_cannot_be_read(
    waiting, monkeypatch, reads
):
    """After a rollback, each row is read anew; an address needs the user's."""
    alice = await waiting()
    place = alice.stored
    faults = away_for(monkeypatch, alice.row, reads)
    with bob_joins(alice, 1, time.time()) as called:
        with bob_joins(alice, 1, name="eve"):  # ahead, so there is something new to tell
            await asyncio.sleep(10)
        alice.hub.view.remove_pod("x")
        await asyncio.sleep(60)
        assert alice.stored == place

        faults.clear()
        await alice.starts()

        assert not called.done()
    assert alice.spawner.gpuspawner_gates.attempt is not None


@pytest.fixture
def takes_changes(monkeypatch):
    """Whether the hub's database takes changes, without which no start goes on."""
    event = asyncio.Event()

    async def begin_now(_):
        await event.wait()

    monkeypatch.setattr(in_line.waiting, "begin_now", begin_now)
    return event


async def test_who_leaves_while_the_database_keeps_the_start_from_going_on_does_not_start(
    waiting, takes_changes
):
    alice = await waiting()
    alice.hub.view.remove_pod("x")
    await settle()

    assert alice.place.leave()
    takes_changes.set()

    assert (await alice.refused()).slug == "left-line"
    assert len(alice.hub.runtime(alice.spawner).preflight.reservations) == 0


def bob_joins(alice, gpus, since=1.0, name="bob"):
    """Let Bob, or somebody else, wait for so many GPUs while the context is open."""
    line, wanted = alice.hub.runtime(alice.spawner).preflight.line, proposal(name, gpus)
    ticket = line.ticket(wanted, name, since)
    assert ticket is not None
    return line.join(ticket, wanted)


async def test_who_is_called_keeps_the_room_for_as_long_as_the_database_fails(
    waiting, takes_changes
):
    alice = await waiting()
    with bob_joins(alice, 1, time.time()) as called:
        alice.hub.view.remove_pod("x")
        await asyncio.sleep(2 * LIFETIME_SECONDS)

        assert not called.done()
    takes_changes.set()
    await alice.starts()


async def test_who_doesnt_wish_to_wait_is_refused(hub_with):
    alice = Waiting(hub_with(*FULL), None)
    await alice.begin()

    refusal = await alice.refused()

    assert refusal.slug == "busy"
    assert refusal.on_form.place == 1


def name_queue(hub, spawner):
    """The namespace has Kueue's default queue: the one for Jobs, for example."""
    default = local_queue("default", spawner.namespace, "team-a")
    known(default, pool("team-a", {"nominalQuota": "2"}), flavor(), store=hub.view.queues)


def left_alone(pod):
    return pod


def held_back(pod):
    """Return a pod that waits for Kueue."""
    return {**pod, "spec": {**pod["spec"], "schedulingGates": [{"name": ADMISSION}]}}


async def test_the_line_is_also_for_pods_with_a_queue_that_kueue_leaves_alone(hub_with):
    hub = hub_with(*FULL)
    hub.admission.answer = left_alone
    alice = Waiting(hub, True)
    name_queue(hub, alice.spawner)
    await alice.begin()
    assert alice.place.said.text == "You are next in line. You are waiting for 1 × A100."
    await asyncio.sleep(60)
    asked = len(hub.admission.asked)

    hub.view.remove_pod("x")

    await alice.starts()
    assert asked < 10


async def test_kueue_s_queue_is_enough_for_pods_that_it_holds_back(hub_with):
    hub = hub_with(*FULL)
    hub.admission.answer = held_back
    alice = Waiting(hub, True)
    name_queue(hub, alice.spawner)
    await alice.begin()

    await alice.starts()
    assert not alice.place.has_waited


@pytest.mark.parametrize("is_held", [True, False], ids=["held back", "left alone"])
async def test_who_waits_for_a_limit_is_in_one_line_also_before_the_hub_knows_of_kueue(
    hub_with, is_held
):
    """Nothing is learned when the hub has just started."""
    hub = hub_with(*FULL)
    hub.admission.answer = held_back if is_held else left_alone
    course = Course(hub)
    alice = course.spawner({"course": {"gpus_per_user": 1}}, queue=True)
    name_queue(hub, alice)
    course.put(alice, "alice", "train", 1)
    alice.user_options = {"accelerator": "t4", "gpus": 1, "wait": True}
    start = asyncio.ensure_future(alice.run_pre_spawn_hook())
    await asyncio.sleep(60)

    assert alice.gpuspawner_gates.turn.is_on != is_held
    start.cancel()
    if is_held:
        with pytest.raises(Refusal) as refusal:
            await start
        assert (refusal.value.slug, refusal.value.on_form.place) == (LIMIT, 0)


async def test_who_wishes_to_wait_does_so_too_if_nobody_can_tell_in_time(hub_with, monkeypatch):
    """Many start together, say, and the API server is slow: who asks to wait isn't sent away."""
    admit = TurnToStart.admit

    async def too_busy(_self, _choice):
        monkeypatch.setattr(TurnToStart, "admit", admit)
        raise Refusal(Message.of("Please try again."), reason=Reason.TRY_AGAIN.value)

    monkeypatch.setattr(TurnToStart, "admit", too_busy)
    alice = Waiting(hub_with(*FULL), True)
    await alice.begin()

    assert alice.place.is_on
    alice.hub.view.remove_pod("x")
    await alice.starts()


async def test_a_fault_of_ours_shows_who_wishes_to_wait_why_the_start_was_refused(
    hub_with, monkeypatch
):
    async def too_busy(_self, _choice):
        raise Refusal(Message.of("Please try again."), reason=Reason.TRY_AGAIN.value)

    def fail(*_):
        raise LookupError("a fault of ours")

    monkeypatch.setattr(TurnToStart, "admit", too_busy)
    monkeypatch.setattr(Decider, "check", fail)
    alice = Waiting(hub_with(*FULL), True)
    with pytest.raises(Refusal) as refused:
        await alice.begin()

    assert refused.value.slug == "try-again"


async def test_who_leaves_is_refused_once_and_the_next_form_says_so(waiting):
    alice = await waiting()

    assert alice.place.leave()
    assert not alice.place.leave()

    assert (await alice.refused()).slug == "left-line"
    assert "You have left the line." in await alice.spawner.get_options_form()
    assert len(alice.hub.runtime(alice.spawner).preflight.line) == 0


@pytest.mark.each_python
async def test_who_has_left_is_not_put_in_line_again_by_the_next_hub(waiting):
    """Even if this one ends before it has stored that the server has stopped."""
    alice = await waiting()
    assert alice.stored is not None

    alice.place.leave()
    await alice.refused()

    assert alice.stored is None


async def while_it_waits(alice):
    return alice.start


async def in_a_hook_after_the_turn(alice):
    alice.spawner.pre_spawn_hook = lambda _: asyncio.sleep(3600)
    alice.hub.view.remove_pod("x")
    await asyncio.sleep(60)
    assert not alice.place.is_on
    return alice.start


async def while_kubespawner_runs_it(alice):
    alice.spawner.gpuspawner_stock.kubespawner = SimpleNamespace(start=lambda: asyncio.sleep(3600))
    return alice.spawner.start()


def by_rest(_, start):
    start.cancel()


def by_the_end_of_the_hub(alice, start):
    """Cancel all tasks as the hub's ``shutdown_cancel_tasks`` does."""
    lasting = asyncio.ensure_future(asyncio.Event().wait())  # those of a hub that reads a cluster
    alice.hub.runtime(alice.spawner)._closing = lasting
    others = asyncio.all_tasks() - {asyncio.current_task()}
    assert start in others
    for task in others:
        task.cancel()


@pytest.mark.each_python
@pytest.mark.parametrize(
    "until", [while_it_waits, in_a_hook_after_the_turn, while_kubespawner_runs_it]
)
@pytest.mark.parametrize(("end", "stays"), [(by_rest, False), (by_the_end_of_the_hub, True)])
async def test_whose_start_is_stopped_has_no_stored_place_unless_the_hub_itself_ends(
    waiting, until, end, stays
):
    """The hub answers 500, and stops nothing, if a cancelled start takes more than a second."""
    alice = await waiting()
    start = await until(alice)
    assert alice.stored is not None

    end(alice, start)
    await asyncio.wait({start})

    assert (alice.stored is not None) is stays


@pytest.mark.parametrize(("end", "stays"), [(by_rest, False), (by_the_end_of_the_hub, True)])
async def test_who_is_admitted_at_once_after_a_restart_and_is_stopped_in_a_hook_is_not_begun_anew(
    hub_with, end, stays
):
    alice = Waiting(hub_with(FULL[0]), True)
    alice.spawner.pre_spawn_hook = lambda _: asyncio.sleep(3600)
    alice.keep()
    alice.spawner.clear_state()  # as the hub does, which stores the state then
    alice.store(state=alice.spawner.get_state())
    await alice.begin()
    assert alice.stored is not None

    end(alice, alice.start)
    await asyncio.wait({alice.start})

    assert (alice.stored is not None) is stays


async def test_a_start_that_fails_after_its_turn_is_not_begun_anew_by_the_next_hub(waiting):
    alice = await waiting()
    alice.hub.view.remove_pod("x")
    await alice.starts()
    assert alice.stored is not None

    with pytest.raises(Refusal), alice.place.kept_if_taken():
        raise Refusal(Message.of("It fails."), reason="bad-image")

    assert alice.stored is None


async def test_who_was_called_keeps_the_place_if_servers_can_not_be_counted(waiting, monkeypatch):
    resumed = []
    monkeypatch.setattr("gpuspawner.line.in_line.resume", lambda _, server: server)
    alice = await waiting()
    monkeypatch.setattr(alice.hub.runtime(alice.spawner), "run", resumed.append, raising=False)
    alice.hub.view.remove_pod("x")
    await alice.starts()

    with pytest.raises(Refusal) as refused, alice.place.kept_if_taken():
        raise Refusal(Message.of("Nobody can count."), reason=UNCOUNTED)

    assert refused.value.text.startswith("Nobody can count. You are back at your place in line.")
    assert alice.stored is not None
    assert resumed == [alice.server]


async def by_course(spawner):
    if spawner.user_options.get("course"):
        spawner.priority_class_name = "teachers"


async def test_who_is_back_in_line_waits_whatever_priority_a_hook_may_give(hub_with):
    """As long as it isn't learned what the hook does, the third gate would send them back."""
    teachers = {"metadata": {"name": "teachers"}, "value": 1000}
    alice = Waiting(hub_with(*FULL, ("PriorityClass", teachers)), True)
    alice.hub.view.state.mark_known("PriorityClass")
    alice.spawner.pre_spawn_hook = by_course
    alice.keep()

    await alice.begin()

    assert alice.place.is_on


async def test_one_can_leave_even_if_nothing_can_be_found_instead(waiting, monkeypatch):
    alice = await waiting()

    async def fail(*_):
        raise ValueError("x")

    monkeypatch.setattr("gpuspawner.gates.accelerators.AcceleratorChoice.explain", fail)

    assert (await alice.place.instead()).alternatives == ()
    assert alice.place.leave()
    await alice.refused()


@pytest.mark.each_python
async def test_a_start_that_is_cancelled_leaves_no_place_and_no_server(waiting):
    """The hub would call a server ready whose start was cancelled."""
    alice = await waiting()
    alice.spawner.server = Server()
    alice.start.cancel()
    await asyncio.wait({alice.start})

    assert alice.spawner.server is None
    assert not alice.place.is_on
    assert len(alice.hub.runtime(alice.spawner).preflight.line) == 0


async def test_servers_that_ask_at_once_get_no_more_places_than_one_by_one(hub_with):
    hub = hub_with(*FULL)
    servers = [Waiting(hub, True) for _ in range(3)]
    for number, server in enumerate(servers):
        server.spawner.pod_name = f"server-{number}"
        server.start = asyncio.ensure_future(server.spawner.run_pre_spawn_hook())
    await settle()

    assert len(hub.runtime(servers[0].spawner).preflight.line) == 1
    for server in servers[1:]:
        assert (await server.refused()).slug == "in-line"


async def test_who_is_renamed_gets_no_more_places(hub_with):
    hub = hub_with(*FULL)
    first, second = Waiting(hub, True), Waiting(hub, True)
    await first.begin()
    second.spawner.user.name, second.spawner.pod_name = "alicia", "jupyter-alicia--b"

    with pytest.raises(Refusal) as refusal:
        await second.begin()

    assert refusal.value.slug == "in-line"


@pytest.mark.parametrize("options", [{"accelerator": "h100"}, {"gpus": "x"}, {"wait": "soon"}])
async def test_whose_stored_options_arent_on_offer_any_more_is_awaited_no_longer(hub_with, options):
    alice = Waiting(hub_with(*FULL), True)
    alice.spawner.user_options |= options
    kept = alice.keep()

    with pytest.raises(Refusal):
        alice.spawner.run_pre_spawn_hook()

    assert not kept.are_awaited


async def test_who_is_admitted_at_once_is_awaited_no_longer(hub_with):
    """Else nobody in line would be called for a minute."""
    alice = Waiting(hub_with(FULL[0]), True)
    kept = alice.keep()

    alice.spawner.run_pre_spawn_hook()

    assert alice.spawner.gpuspawner_gates.attempt is not None
    assert not kept.are_awaited


async def test_who_joins_again_has_the_kept_place_and_is_awaited_no_longer(hub_with):
    """And waits as wished last."""
    alice = Waiting(hub_with(*FULL), "here")
    kept = alice.keep()

    await alice.begin()

    assert alice.place.is_on
    assert not kept.are_awaited
    assert (alice.stored.since, alice.stored.wish) == (1.0, Wish.HERE)


async def test_who_has_the_name_of_a_deleted_user_does_not_get_their_place(hub_with):
    alice = Waiting(hub_with(*FULL), True)
    kept = alice.hub.runtime(alice.spawner).line.stored_places
    kept.keep(orm.Spawner(name="", user=alice.row.user), KeptPlace(1.0, Wish.ANYWAY))
    alice.spawner.clear_state()

    await alice.begin()

    assert alice.stored.since > 1.0
    assert kept.are_awaited


async def test_who_waits_leaves_a_later_start_the_options_that_were_granted_last(hub_with):
    alice, granted = Waiting(hub_with(*FULL), True), {"accelerator": "t4"}
    sent, row = alice.spawner.user_options, alice.row
    copy_context().run(partial(alice.store, user_options=granted))
    alice.store(user_options=sent)  # as the hub does at a request

    await alice.begin()

    assert row.user_options == granted
    assert alice.spawner.user_options == sent
    assert alice.stored.options["accelerator"] == "a100"
    assert alice.place.leave()
    assert (await alice.refused()).slug == "left-line"
    assert row.user_options == alice.spawner.user_options == granted


async def test_who_leaves_is_noted_as_such_and_not_as_refused(hub_with):
    alice, record = Waiting(hub_with(*FULL), True), Record()
    alice.hub.runtime(alice.spawner).record = record.note
    await alice.begin()

    assert alice.place.leave()
    await alice.refused()

    assert [it.happened.value for it in record.facts] == ["joined", "left"]
    assert not record.refusals(time.time())


async def test_who_starts_without_the_wish_to_wait_is_not_put_in_line_by_the_next_hub(hub_with):
    alice = Waiting(hub_with(FULL[0]), None)
    alice.keep()
    alice.spawner.clear_state()

    alice.spawner.run_pre_spawn_hook()

    assert alice.row.state["gpuspawner"].keys() == {"began"}


@pytest.mark.parametrize("slug", ["unreachable", "uncounted"])
async def test_a_place_is_kept_while_nobody_can_decide(hub_with, monkeypatch, slug):
    def fails(*_):
        raise Refusal(Message.of("Later."), reason=slug)

    alice = Waiting(hub_with(*FULL), True)
    kept = alice.keep()
    monkeypatch.setattr("gpuspawner.compat.kubespawner.connect", fails)

    with pytest.raises(Refusal):
        alice.spawner.run_pre_spawn_hook()

    assert kept.are_awaited


async def node_goes(hub):
    """Let the only node with an A100 go, as autoscalers and spot reclaims do."""
    hub.view.state.remove("Pod", NAMESPACE, "x")
    hub.view.state.remove("Node", "", "a")
    hub.view.wake()
    await asyncio.sleep(10)


async def test_a_place_is_kept_until_the_only_node_is_replaced(waiting):
    alice = await waiting()
    await node_goes(alice.hub)
    assert alice.place.said.text == (
        "No machine can run your server right now. If that doesn't change within 10 minutes, you "
        "lose your place. You are next in line. You are waiting for 1 × A100."
    )

    alice.hub.view.put(*FULL[0])

    await alice.starts()


async def test_who_loses_the_place_because_no_node_comes_back_reads_so_without_old_news(hub_with):
    t4 = "Node", labelled(node("t", 1), {"gpu": "t4"})
    alice = Waiting(hub_with(*FULL, t4), True)
    await alice.begin()
    await node_goes(alice.hub)

    refusal = await alice.refused()

    told = (
        "You have lost your place in line: for 10 minutes, no machine could run your server. "
        "There is no A100 here right now."
    )
    runtime = alice.hub.runtime(alice.spawner)
    assert (refusal.slug, refusal.text) == ("impossible", told)
    assert failed_starts.last_failure(alice.spawner, runtime.failed_starts) == told
    assert [it.grant.accelerator.key for it in refusal.on_form.alternatives[:1]] == ["t4"]


async def test_a_place_of_an_earlier_hub_is_kept_too_while_the_only_node_is_replaced(
    hub_with, waiting
):
    place = (await waiting()).stored
    alice = Waiting(hub_with(), True)
    alice.keep(place.since, **place.options)

    await alice.begin()

    assert alice.place.is_on
    assert (await alice.refused()).slug == "impossible"
    assert not alice.place.is_on


async def test_a_place_of_an_earlier_hub_keeps_no_impossible_start_of_something_else(hub_with):
    alice = Waiting(hub_with(), True)
    alice.keep(accelerator="t4", gpus=1)

    await alice.begin()

    assert (await alice.refused()).slug == "impossible"
    assert not alice.place.has_waited


async def test_a_pod_waits_in_line_as_admission_makes_it(hub_with):
    hub = hub_with(
        ("Node", node("a", 1, taints=[TAINT])),
        ("Pod", pod("x", 1, on="a", tolerations=[TOLERATION])),
    )
    hub.admission.answer = tolerating
    alice = Waiting(hub, True)
    await alice.begin()
    for _ in range(100):
        await asyncio.sleep(0)
    assert alice.place.is_on
    assert len(hub.admission.asked) <= 2

    hub.view.remove_pod("x")

    await alice.starts()


async def test_the_pod_that_is_sent_is_kept_off_a_node_that_somebody_ahead_holds(hub_with):
    hub = hub_with(
        *(named_node("large", 4), ("Pod", pod("x", 3, on="large"))),
        *(named_node("small", 1), ("Pod", pod("y", 1, on="small"))),
    )
    alice = Waiting(hub, True)
    with bob_joins(alice, 4):
        await alice.begin()
        hub.view.remove_pod("y")
        await alice.starts()

    sent = await alice.spawner.get_pod_manifest()

    assert "'NotIn'" in str(sent.spec.affinity)
    assert "'large'" in str(sent.spec.affinity)


@pytest.mark.parametrize("is_deleted", [False, True])
async def test_who_has_a_place_keeps_it_if_a_node_goes_away_in_the_moment_of_the_call(
    waiting, is_deleted
):
    alice = await waiting()
    reservations = alice.hub.runtime(alice.spawner).preflight.reservations
    alice.hub.view.remove_pod("x")
    for _ in range(100):
        await asyncio.sleep(0)
        if len(reservations):
            break

    if is_deleted:
        alice.hub.view.state.remove("Node", "", "a")
    other, cordoned = node("b", 0), node("a", 1, unschedulable=True)
    alice.hub.view.put("Node", other if is_deleted else cordoned)
    await settle()

    assert not alice.start.done()
    assert len(reservations) == 0
    alice.hub.view.put("Node", node("a", 1))
    await alice.starts()


async def test_who_is_called_as_the_node_is_back_has_ten_minutes_more_if_it_goes_again(waiting):
    alice = await waiting()
    reservations = alice.hub.runtime(alice.spawner).preflight.reservations
    await node_goes(alice.hub)
    await asyncio.sleep(300)
    alice.hub.view.put(*FULL[0])
    for _ in range(100):
        await asyncio.sleep(0)
        if len(reservations):
            break

    alice.hub.view.state.remove("Node", "", "a")
    alice.hub.view.wake()
    await asyncio.sleep(590)

    assert alice.place.is_on
    assert alice.place.said.text.startswith("No machine can run your server right now.")
    alice.hub.view.put(*FULL[0])
    await alice.starts()


async def test_no_alternative_is_offered_that_others_in_line_wait_for(hub_with):
    hub = hub_with(("Node", node("n", 2)), ("Pod", pod("x", 1, on="n")))
    alice = Waiting(hub, None)
    alice.spawner.user_options = {"accelerator": "a100", "gpus": 2}
    with bob_joins(alice, 2):
        await alice.begin()
        offered = (await alice.refused()).on_form.alternatives

    assert [it.grant.gpus for it in offered] == [0]


class Gate:
    """Holds a start between its call and its admission, as a dry run does."""

    def __init__(self, alice, monkeypatch):
        self._admit, self._opens = alice.place.admit, asyncio.Event()
        self.alice, self._is_full, self._reached = alice, False, asyncio.Event()
        monkeypatch.setattr(alice.place, "admit", self._hold)

    async def _hold(self, choice):
        self._reached.set()
        await self._opens.wait()
        if self._is_full:
            self.alice.hub.view.put("Pod", pod("x", 1, on="a"))
            preflight = self.alice.hub.runtime(self.alice.spawner).preflight
            preflight.reservations.release(choice.proposal.key)
        return await self._admit(choice)

    async def reach(self):
        """Call the start."""
        self.alice.hub.view.remove_pod("x")
        await self._reached.wait()

    def open(self, *, is_full=False):
        self._is_full = is_full
        self._opens.set()


@pytest.fixture
async def gate(waiting, monkeypatch):
    """A start of Alice's that has been called."""
    made = Gate(await waiting(), monkeypatch)
    await made.reach()
    return made


async def test_who_is_called_cant_leave_any_more(waiting):
    alice = await waiting()
    alice.hub.view.remove_pod("x")
    await alice.starts()
    assert not alice.place.leave()


async def test_a_page_opened_between_the_call_and_the_start_tells_of_both(gate):
    event = await anext(gate.alice.spawner.progress())

    assert "You are next in line." in event["message"]
    assert gate.alice.place._pages == 1
    gate.open()
    await gate.alice.starts()


async def test_who_leaves_after_the_call_does_not_join_again(gate):
    assert gate.alice.place.leave()
    gate.open(is_full=True)

    assert (await gate.alice.refused()).slug == "left-line"
    assert "You have left the line." in await gate.alice.spawner.get_options_form()


async def test_who_leaves_after_the_call_starts_if_that_is_too_late(gate):
    assert gate.alice.place.leave()
    gate.open()

    await gate.alice.starts()
    assert not gate.alice.place.leave()


async def test_who_leaves_after_the_call_does_not_wait_again_if_the_room_is_taken(
    gate, monkeypatch
):
    alice, resumed = gate.alice, []
    monkeypatch.setattr(alice.hub.runtime(alice.spawner), "run", resumed.append, raising=False)
    monkeypatch.setattr("gpuspawner.line.in_line.resume", lambda _, server: server)
    assert alice.place.leave()
    gate.open()
    await alice.starts()
    assert alice.stored is None  # nor does the next hub begin the start anew

    with pytest.raises(Refusal) as refused, alice.place.kept_if_taken():
        raise Refusal(Message.of("It was taken."), reason="taken")

    assert refused.value.text == "It was taken."
    assert resumed == []


# Policies hold in line, too


class Limited:
    """Alice, who waits for the only GPU, and whose policy lets her have one at a time."""

    def __init__(self, hub):
        self.course = Course(hub)
        self.spawner = self.course.spawner({"course": {"gpus_per_user": 1}}, queue=True)
        self.row = self.course.database.server(self.course.row, runs=False)
        self.spawner.orm_spawner = self.row
        self.spawner.user_options = {"accelerator": "t4", "gpus": 1, "wait": True}
        self.start = asyncio.ensure_future(self.spawner.run_pre_spawn_hook())

    @property
    def turn(self):
        return self.spawner.gpuspawner_gates.turn

    async def reaches_the_limit(self):
        """Start another server of hers, and free the GPU that she waits for."""
        self.course.put(self.spawner, "alice", "train", 1)
        self.course.hub.view.remove_pod("x")
        await asyncio.sleep(60)

    async def counting(self, health):
        """Let servers be counted, or not."""
        self.course.health = health
        await asyncio.sleep(60)


@pytest.fixture
async def limited(hub_with):
    made = Limited(hub_with(*FULL))
    await settle()
    return made


UNKNOWN = Stale(40.0, "no answer")


async def test_a_place_is_kept_while_servers_cant_be_counted(limited):
    limited.course.hub.view.remove_pod("x")
    await limited.counting(UNKNOWN)

    assert limited.turn.is_on
    assert limited.turn.said.text.startswith("You are next in line.")

    await limited.counting(Live(0.0))
    assert limited.start.done()


async def test_who_reaches_a_limit_while_servers_cant_be_counted_reads_of_it(limited):
    limited.course.health = UNKNOWN
    await limited.reaches_the_limit()

    await limited.counting(Live(0.0))

    assert "You can have 1 GPU at a time" in limited.turn.said.text


async def test_who_waits_for_a_limit_reads_the_place_and_is_offered_what_the_limit_leaves(limited):
    await limited.reaches_the_limit()

    instead = (await limited.turn.instead()).alternatives

    assert limited.turn.said.text.endswith(
        "You are next in line. You are waiting for 1 × T4. "
        "Your place in line is kept until the limit allows your server."
    )
    assert [it.grant.accelerator for it in instead] == [None]


async def test_who_waits_for_a_limit_reads_in_the_own_language_what_is_in_use_now(hub_with):
    """The line asks the policies in a task that somebody else's start has begun."""

    async def begin(spawner, tag):
        spawner.user_options = {"accelerator": "t4", "gpus": 1, "wait": True}
        language.set_locale(tag)
        await spawner.run_pre_spawn_hook()

    course, policies = Course(hub_with(*FULL)), {"course": {"gpus_per_user": 1}}
    queue = {"places_per_user": 2}
    english, chinese = (course.spawner(policies, it, queue=queue) for it in (GPUSpawner, Train))
    told = [it.gpuspawner_gates.turn for it in (english, chinese)]
    starts = [asyncio.ensure_future(begin(*it)) for it in ((english, "en"), (chinese, "zh-CN"))]
    await settle()
    course.put(english, "alice", "lab", 1)
    course.hub.view.remove_pod("x")
    await asyncio.sleep(60)

    course.put(english, "alice", "old", 1)
    await asyncio.sleep(60)

    assert told[0].said.text.startswith("You can have 1 GPU at a time, and you're using 2: lab and")
    assert told[1].said.text.startswith("您最多可以同时使用 1 个 GPU，目前已使用 2：lab、old。")
    for start in starts:
        start.cancel()


async def test_who_waits_for_a_limit_is_not_called_while_servers_cant_be_counted(limited, caplog):
    caplog.set_level(logging.INFO)
    await limited.reaches_the_limit()
    caplog.clear()

    await limited.counting(UNKNOWN)

    assert limited.turn.is_on
    assert "waits in line" not in caplog.text  # again, as it would after a call in vain


@pytest.mark.usefixtures("no_threads")
async def test_who_waits_for_a_limit_is_not_called_while_the_database_cannot_be_read(
    limited, monkeypatch, caplog
):
    caplog.set_level(logging.INFO)
    await limited.reaches_the_limit()
    faults = away_for(monkeypatch, limited.row, (type(limited.turn._policing), "examine"))
    caplog.clear()
    await asyncio.sleep(60)
    assert "waits in line" not in caplog.text

    faults.clear()
    await asyncio.sleep(60)

    assert limited.turn.said.text.startswith("You can have 1 GPU at a time")
    assert limited.turn.is_on


@pytest.mark.parametrize("preflight", ["warn", "off"])
async def test_who_waits_for_a_limit_starts_without_room_where_the_hub_starts_everybody_so(
    hub_with, preflight
):
    course = Course(hub_with(*FULL))
    spawner = course.spawner({"course": {"gpus_per_user": 1}}, queue=True, preflight=preflight)
    spawner.orm_spawner = course.database.server(course.row, runs=False)
    course.put(spawner, "alice", "train", 1)
    spawner.user_options = {"accelerator": "t4", "gpus": 1, "wait": True}
    start = asyncio.ensure_future(spawner.run_pre_spawn_hook())
    await settle()
    assert spawner.gpuspawner_gates.turn.is_on

    for key in list(course.accounts(spawner).ledger.pods):
        course.accounts(spawner).ledger.remove("ServerPod", *key)
    await asyncio.sleep(60)

    assert start.done()
    await start


# Who waits with the page open, who is away, and who comes back


AWAY = 60 * QueueRules().minutes_away
"""For how long a place is kept for somebody who has left the page."""


async def test_who_is_away_for_too_long_loses_the_place(waiting):
    alice = await waiting("here")
    assert (await alice.refused()).slug == "away-from-line"


async def test_an_open_page_keeps_the_place_and_a_visit_begins_the_time_anew(waiting):
    alice = await waiting("here")
    with alice.place.watched():
        await asyncio.sleep(1.1 * AWAY)
        assert alice.place.is_on
    await asyncio.sleep(0.9 * AWAY)
    assert alice.place.is_on  # closing the page is the last visit
    alice.place.see()
    await asyncio.sleep(0.9 * AWAY)
    assert alice.place.is_on


async def test_who_comes_back_when_there_is_room_is_served(waiting):
    alice = await waiting("here")
    await asyncio.sleep(in_line.RELOAD_SECONDS + 10)
    alice.hub.view.remove_pod("x")
    await asyncio.sleep(60)
    assert alice.place.is_on

    alice.place.see()

    await alice.starts()


async def test_who_waits_with_a_page_starts_after_a_restart_only_with_one(hub_with):
    alice = Waiting(hub_with(FULL[0]), "here")
    alice.keep(accelerator="a100", gpus=1)
    await alice.begin()
    await asyncio.sleep(30)
    assert alice.spawner.gpuspawner_gates.attempt is None
    assert alice.place.is_on

    alice.place.see()

    await alice.starts()


async def test_who_opens_no_page_after_a_restart_loses_the_place(hub_with):
    alice = Waiting(hub_with(FULL[0]), "here")
    alice.keep(accelerator="a100", gpus=1)
    await alice.begin()

    assert (await alice.refused()).slug == "away-from-line"


async def test_who_is_back_with_an_open_page_goes_on_at_once(hub_with):
    alice = Waiting(hub_with(FULL[0]), "here")
    alice.keep(accelerator="a100", gpus=1)
    with alice.place.watched():
        alice.spawner.run_pre_spawn_hook()

    assert alice.spawner.gpuspawner_gates.attempt is not None


async def test_whom_the_hub_still_checks_when_it_reads_the_places_needs_a_page_too(hub_with):
    alice = Waiting(hub_with(FULL[0]), "here")
    places = alice.hub.runtime(alice.spawner).line.stored_places
    places.keep(alice.server, KeptPlace(1.0, Wish.HERE, {"accelerator": "a100", "gpus": 1}))
    places.keep_stored({})
    await alice.begin()
    await asyncio.sleep(30)

    assert alice.spawner.gpuspawner_gates.attempt is None


@pytest.mark.parametrize(("owner", "method"), [(Decider, "check"), (WaitingLine, "ticket")])
async def test_a_fault_of_the_line_costs_nobody_a_start_after_a_restart(
    owner, method, hub_with, monkeypatch
):
    alice = Waiting(hub_with(FULL[0]), "here")
    alice.keep(accelerator="a100", gpus=1)

    def fails(*_, **__):
        raise RuntimeError

    monkeypatch.setattr(owner, method, fails)
    await alice.spawner.run_pre_spawn_hook()

    assert alice.spawner.gpuspawner_gates.attempt is not None


async def test_from_whom_the_room_was_taken_a_moment_ago_needs_no_new_page(hub_with):
    alice = Waiting(hub_with(FULL[0]), "here")
    places = alice.keep(accelerator="a100", gpus=1)
    places.pop(alice.server)  # it has joined, and was called
    places.keep(alice.server, KeptPlace(1.0, Wish.HERE))

    alice.spawner.run_pre_spawn_hook()

    assert alice.spawner.gpuspawner_gates.attempt is not None


async def test_a_server_that_needs_no_page_waits_without_one(waiting):
    alice = await waiting(True)
    await asyncio.sleep(1.1 * AWAY)
    assert alice.place.is_on


async def test_the_page_says_whether_it_has_to_stay_open(waiting, monkeypatch):
    monkeypatch.setattr(in_line, "line", lambda _: "/hub/line")
    for wish, says in (("here", "while this page is open"), (True, "You can close this page")):
        alice = await waiting(wish)
        event = await anext(alice.spawner.progress())
        assert says in event["html_message"]
        assert says not in event["message"]
        alice.start.cancel()


class TellingItself(GPUSpawner):
    """An administrator's class that tells how far a start is."""

    async def progress(self):
        yield {"progress": 50, "message": "Half-way."}


@pytest.mark.parametrize("is_back", [False, True], ids=["joins", "is back after a restart"])
async def test_a_server_whose_pages_nobody_can_see_needs_none(hub_with, is_back):
    alice = Waiting(hub_with(*FULL), "here", TellingItself)
    if is_back:
        alice.keep(accelerator="a100", gpus=1)
    await alice.begin()
    await asyncio.sleep(1.1 * AWAY)
    assert alice.place.is_on

    alice.hub.view.remove_pod("x")

    await alice.starts()
