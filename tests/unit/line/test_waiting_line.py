"""The line on the live view: who is called, and who stays."""

import asyncio
import time
from contextlib import ExitStack
from dataclasses import replace

import pytest

from gpuspawner.cluster.health import Forbidden, Reading, Stale, Unreachable
from gpuspawner.cluster.kinds import KINDS
from gpuspawner.line.front_of_line import GONE_SECONDS, UNSURE_SECONDS
from gpuspawner.line.line_room import LineRoom
from gpuspawner.line.order import Serving
from gpuspawner.line.stored_places import StoredPlaces
from gpuspawner.line.usual_waits import LEAST_WAITS, UsualWait
from gpuspawner.line.waiting_line import WaitingLine
from gpuspawner.offers.offers import Offers
from gpuspawner.preflight.decider import Decider
from gpuspawner.preflight.decision import AfterPreemption, Reason, Start, UnknownRules, Wait
from gpuspawner.preflight.nobody_waits import WhoWaits
from gpuspawner.reservations.pending_pods import PATIENCE_SECONDS
from gpuspawner.reservations.place_in_line import KeptPlace, Wish
from tests.unit.makers.line_stage import FULL, Stage
from tests.unit.makers.storage import WAIT, claim, uses, volume
from tests.unit.makers.worlds import (
    A100,
    GPU,
    HOSTNAME,
    NAMESPACE,
    ONE_FREE,
    Instead,
    labelled,
    named_node,
    node,
    of_pool,
    pod,
    proposal,
    refused,
    settle,
)

pytestmark = pytest.mark.usefixtures("clock")

USERS = ("ann", "bob", "cid")
ON_OFFER = Offers(accelerators={"a100": A100})


async def test_who_is_called_has_a_reservation_in_the_same_tick(stage):
    with stage.joining("ann") as ann, stage.joining("bob") as bob:
        await settle()
        assert not ann.done()

        await stage.ends("x")

        assert ann.result() == ()
        assert stage.preflight.reservations.find(proposal("ann").key) is not None
        assert not bob.done()
        assert stage.line.places_of("ann") == 0
        assert stage.line.standing(stage.tickets["bob"]).place == 1


async def test_a_newcomer_is_refused_behind_those_in_line_but_not_who_was_called(stage):
    with stage.joining("two", 2), stage.joining("ann"):
        await stage.ends("x")
        decision = stage.preflight.decider.check(proposal("new"))
        assert (refused(decision), decision.in_line) == (Reason.BUSY, 2)

        await stage.ends("y")

        assert isinstance(stage.preflight.decider.check(proposal("two", 2)), Start)
        decision = stage.preflight.decider.check(proposal("new"))
        assert (refused(decision), decision.in_line) == (Reason.BUSY, 1)


async def test_a_newcomer_is_behind_those_in_line_even_if_the_clock_was_set_back(stage):
    with stage.joining("two", 2, since=time.time() + 3600):
        await stage.ends("x")

        assert refused(stage.preflight.decider.check(proposal("new")))


@pytest.mark.parametrize("health", [Reading(0), Stale(60, "it is silent"), Unreachable("no route")])
async def test_nobody_is_called_while_contact_is_lost_and_nobody_loses_a_place(stage, health):
    with stage.joining("ann") as ann:
        stage.view.now, live = health, stage.view.now
        await stage.ends("x")
        await asyncio.sleep(2 * UNSURE_SECONDS)
        assert not ann.done()
        assert len(stage.line) == 1

        stage.view.now = live
        await stage.wakes()

        assert ann.done()


@pytest.mark.parametrize("health", [Stale(60, "it is silent"), Unreachable("no route")])
async def test_a_node_that_cant_come_back_without_contact_costs_nobody_the_place(stage, health):
    with stage.joining("ann") as ann:
        for it in ("x", "y"):  # with their node, and before anybody looks
            stage.view.state.remove("Pod", NAMESPACE, it)
        stage.view.state.remove("Node", "", "n")
        await stage.wakes()
        stage.view.now, live = health, stage.view.now
        await asyncio.sleep(2 * GONE_SECONDS)
        stage.view.now = live
        await stage.wakes()
        assert not ann.done()
        assert stage.line.standing(stage.tickets["ann"]).lost_in > GONE_SECONDS - 5

        stage.view.put(*FULL[0])
        await stage.wakes()
        assert stage.preflight.reservations.find(proposal("ann").key) is not None


async def test_of_whom_nobody_could_tell_before_contact_was_lost_wait_half_a_minute_anew(stage):
    needs_devices = {"resourceClaims": [{"name": "gpus", "resourceClaimName": "ann"}]}
    with stage.joining("ann", pod=needs_devices) as ann:
        await stage.ends("x", "y")
        stage.view.now, live = Unreachable("no route"), stage.view.now
        await asyncio.sleep(2 * UNSURE_SECONDS)
        stage.view.now = live
        await stage.wakes()
        assert not ann.done()

        await asyncio.sleep(UNSURE_SECONDS + 2)
        assert ann.done()


async def test_all_start_unchecked_half_a_minute_after_a_right_was_withdrawn(stage):
    """However many want the same."""
    with ExitStack() as open_:
        waiting = [open_.enter_context(stage.joining(f"p{number}")) for number in range(20)]
        stage.view.now = Forbidden(("nodes",), "it is forbidden")
        await stage.ends("x")
        await asyncio.sleep(UNSURE_SECONDS - 1)
        assert not any(it.done() for it in waiting)

        await asyncio.sleep(4)

        assert {it.result() for it in waiting} == {()}
        assert stage.preflight.reservations.find(proposal("p0").key) is None


async def test_who_waits_is_told_how_long_those_waited_who_were_called_before(stage):
    """Of those who waited for the same: 20 minutes each, and the others an hour."""
    for number in range(LEAST_WAITS):
        for gpus, minutes in ((1, 20), (2, 60)):
            since = time.time() - 60 * minutes
            with stage.joining(f"p{number}", gpus, since):
                await stage.ends("x", "y")
            stage.preflight.reservations.release(proposal(f"p{number}").key)
            stage.view.put("Pod", pod("x", 1, on="n"))
            stage.view.put("Pod", pod("y", 1, on="n"))
    now = time.time()
    with stage.joining("ann", since=now), stage.joining("bob", 2, since=now):
        assert stage.line.standing(stage.tickets["ann"]).usual == UsualWait(20, 21, 1)
        assert stage.line.standing(stage.tickets["bob"]).usual == UsualWait(60, 61, 1)


async def test_who_waits_for_a_limit_or_leaves_doesnt_count_as_having_waited(stage):
    async def allows():
        return True

    for number in range(LEAST_WAITS):
        with stage.joining(f"p{number}", since=time.time() - 3600, allows=allows) as called:
            await stage.ends("x")
            await asyncio.wait_for(called, 5)
        stage.preflight.reservations.release(proposal(f"p{number}").key)
        stage.view.put("Pod", pod("x", 1, on="n"))
        with stage.joining(f"p{number}", since=time.time() - 3600):
            await settle()

    with stage.joining("ann", since=time.time()):
        assert stage.line.standing(stage.tickets["ann"]).usual is None


async def test_who_leaves_makes_room_for_the_next(stage):
    first = ExitStack()
    first.enter_context(stage.joining("two", 2))
    with stage.joining("ann") as ann:
        await stage.ends("x")
        assert not ann.done()  # the node is kept for the first

        first.close()
        await stage.wakes()

        assert ann.done()


async def test_one_node_is_kept_for_the_earliest_and_others_go_ahead_elsewhere():
    stage = Stage(
        named_node("large", 4),
        ("Pod", pod("x", 2, on="large")),
        named_node("small", 2),
        ("Pod", pod("y", 2, on="small")),
    )
    with (
        stage.joining("four", 4) as four,
        stage.joining("two", 2) as two,
        stage.joining("one", 1) as one,
    ):
        await settle()
        kept = [stage.line.standing(stage.tickets[it]).kept for it in ("four", "two", "one")]
        assert kept == [2, 0, 0]

        await stage.shows("Pod", pod("y", 1, on="small"))

        assert (four.done(), two.done(), one.done()) == (False, False, True)
        assert one.result() == ("large",)


async def test_nobody_collects_on_a_node_that_was_just_promised_to_another():
    of_a, of_b = pod("x", 4, on="a"), pod("y", 1, on="b")
    stage = Stage(("Node", node("a", 4)), ("Pod", of_a), ("Node", node("b", 4)), ("Pod", of_b))
    with stage.joining("first", 4) as first, stage.joining("second", 4):
        await stage.ends("x")

        assert first.done()
        assert stage.line.standing(stage.tickets["second"]).kept == 3


async def test_what_is_kept_for_somebody_is_told_in_gpus_whatever_else_the_server_needs():
    efa = "vpc.amazonaws.com/efa"
    machine = node("n", 8)
    machine["status"]["allocatable"][efa] = "32"
    amounts = {"nvidia.com/gpu": "8", efa: "32"}
    container = {"name": "notebook", "resources": {"requests": amounts, "limits": amounts}}
    stage = Stage(("Node", machine), ("Pod", pod("x", 1, on="n")))
    with stage.joining("eight", pod={"containers": [container]}):
        await stage.wakes()

        assert stage.line.standing(stage.tickets["eight"]).kept == 7


async def test_who_is_kept_off_a_node_is_called_only_if_others_surely_leave_the_rest():
    stage = Stage(named_node("large", 4), ("Pod", pod("x", 2, on="large")), named_node("small", 1))
    promised = proposal("promised")  # it may go to either node
    assert isinstance(await stage.preflight.reserving.take(promised), Start)
    with stage.joining("four", 4) as four, stage.joining("one") as one:
        await settle()
        assert not one.done()

        stage.preflight.reservations.send(promised.key)
        await stage.shows("Pod", pod("promised", 1, on="large"))

        assert (four.done(), one.done()) == (False, True)
        assert one.result() == ("large",)


async def test_others_start_before_one_for_whom_no_node_is_left(stage):
    stage.view.put("Node", labelled(node("other", 1), {"gpu": "t4"}))
    stage.view.put("Pod", pod("z", 1, on="other"))
    on = {"nodeSelector": {"gpu": "t4"}}
    with stage.joining("ann", pod=on) as ann, stage.joining("bob") as bob:
        await settle()
        stage.view.state.remove("Node", "", "other")
        stage.view.remove_pod("z")
        await settle()

        await stage.ends("x", "y")

        assert bob.done()
        assert not ann.done()
        stage.preflight.reservations.end(proposal("bob").key)
        assert stage.preflight.decider.check(proposal("new", 2)) == Start(proposal("new", 2).grant)
        await stage.shows("Node", labelled(node("other", 1), {"gpu": "t4"}))
        assert ann.done()


@pytest.mark.each_python
async def test_a_start_that_was_cancelled_in_the_same_tick_disturbs_nobody(stage):
    with stage.joining("ann") as ann, stage.joining("bob") as bob:
        await settle()
        ann.cancel()
        await stage.ends("x", "y")
        assert bob.done()


def awaiting_zoe(since=0.5):
    """The places of a hub that has just started: Zoe's."""
    kept = StoredPlaces()
    kept.keep(("zoe", ""), KeptPlace(since, Wish.ANYWAY))
    return kept


async def test_while_places_are_awaited_nobody_is_called_and_they_count_as_ahead():
    kept = awaiting_zoe()
    stage = Stage(*FULL, kept=kept)
    with stage.joining("ann") as ann:
        await stage.ends("x")
        assert not ann.done()
        assert stage.line.standing(stage.tickets["ann"]).place == 2
        assert refused(stage.preflight.decider.check(proposal("new")))

        kept.pop(("zoe", ""))
        await stage.wakes()

        assert ann.done()


async def test_the_line_is_served_without_a_change_too(stage):
    """Some promises end with time alone."""
    with stage.joining("ann") as ann:
        stage.view.state.remove("Pod", "jhub", "x")  # nothing is told of it

        await asyncio.wait_for(ann, 5)


@pytest.mark.parametrize(
    "containers", ["none", [{"name": "it", "resources": {"requests": {"nvidia.com/gpu": "1x"}}}]]
)
async def test_a_pod_that_nobody_can_read_gets_no_ticket(stage, containers):
    odd = replace(proposal("odd"), pod={"spec": {"containers": containers}})
    assert stage.line.ticket(odd, "odd", time.time()) is None
    assert stage.line.ahead_of(odd) == 0


async def test_who_waits_for_a_limit_is_not_in_line_for_a_gpu(stage):
    allowed = [False]

    async def allows():
        return allowed[0]

    with stage.joining("ann"), stage.joining("bob", allows=allows):
        assert stage.line.waiting() == {"a100": 1}
        assert len(stage.line) == 2

        allowed[0] = True
        await stage.wakes()
        await asyncio.sleep(3)
        assert stage.line.waiting() == {"a100": 2}
    assert stage.line.is_empty


@pytest.fixture
async def promised_to_others():
    """Two free nodes, one of which is promised to a start: it may get to either."""
    stage = Stage(
        named_node("a", 1), ("Node", labelled(node("b", 1), {HOSTNAME: "b", "zone": "b"}))
    )
    assert isinstance(await stage.preflight.reserving.take(proposal("p")), Start)
    return stage


IN_ZONE_B = {"nodeSelector": {"gpu": "a100", "zone": "b"}}


async def never():
    return False


async def test_nobody_is_refused_behind_those_who_arent_called_now(promised_to_others):
    """Who is sure to get the room a moment later waits for that moment."""
    stage, new = promised_to_others, proposal("new", **IN_ZONE_B)
    with stage.joining("held", allows=never):
        assert stage.preflight.decider.check(new) == Start(new.grant)
        start = asyncio.ensure_future(stage.preflight.reserving.take(new))
        await settle()
        assert not start.done()

        stage.preflight.reservations.send(("jhub", "p"))
        await stage.shows("Pod", pod("p", 1, on="a"))

        assert await start == Start(new.grant)


async def test_who_is_refused_behind_others_reads_how_many_wait_also_those_who_arent_called_now(
    promised_to_others,
):
    stage, new = promised_to_others, proposal("new", **IN_ZONE_B)
    with stage.joining("held", allows=never), stage.joining("ann", pod=IN_ZONE_B):
        decision = stage.preflight.decider.check(new)

        assert (refused(decision), decision.in_line) == (Reason.BUSY, 2)


async def test_who_collects_starts_instead_on_that_node_if_nobody_else_is_called_now():
    stage = Stage(named_node("n", 2), ("Pod", pod("x", 1, on="n")))
    with stage.joining("alice", 2), stage.joining("held", 2, allows=never):
        await settle()
        assert stage.line.standing(stage.tickets["alice"]).kept == 1
        one = proposal("alice")
        assert stage.preflight.decider.check(one) == Start(one.grant)

        with stage.joining("bob", 2):
            assert refused(stage.preflight.decider.check(one)) is Reason.BUSY


async def test_a_fault_while_the_line_is_served_ends_no_wait(stage, monkeypatch):
    with stage.joining("ann") as ann:
        await settle()
        with monkeypatch.context() as patch:
            patch.setattr(Serving, "serve", lambda *_: 1 / 0)
            await stage.ends("x")
        assert not ann.done()

        await stage.wakes()

        assert ann.done()


async def test_who_takes_nothing_that_others_wait_for_isnt_refused_behind_them(monkeypatch):
    """Otherwise the line would call them at once, and the gate would refuse them again."""
    stage = Stage(*FULL, kept=awaiting_zoe(2.0))
    unknown = Start(proposal("ann").grant, (UnknownRules(("a rule",)),))
    monkeypatch.setattr(Decider, "_on_nodes", lambda *_: unknown)

    with stage.joining("ann") as ann:
        assert await asyncio.wait_for(ann, 2 * UNSURE_SECONDS) == ()
    assert await stage.preflight.reserving.take(proposal("ann")) == unknown


@pytest.fixture
def growing(stage):
    """Beside it, a pool of which nobody knows whether it may grow."""
    core = labelled(node("core", 0), {"cloud.google.com/gke-nodepool": "core"})
    stage.view.put("Node", core)
    stage.view.autoscalers.mark_known("NodePool")
    return stage


async def test_of_those_who_wait_for_a_pool_that_may_grow_one_at_a_time_tries_it(growing):
    joining = growing.joining
    with joining("ann") as ann, joining("bob") as bob, joining("cid") as cid:
        await growing.wakes()
        assert (ann.done(), bob.done(), cid.done()) == (True, False, False)

        await growing.wakes()
        assert not bob.done()

        # No machine has come, or ann gets one.
        growing.preflight.reservations.release(("jhub", "ann"))
        await growing.wakes()
        assert (bob.done(), cid.done()) == (True, False)


async def test_a_newcomer_tries_no_pool_for_which_others_wait_to_try_it(growing):
    with growing.joining("ann") as ann, growing.joining("bob") as bob:
        await growing.wakes()
        assert (ann.done(), bob.done()) == (True, False)

        assert refused(growing.preflight.decider.check(proposal("new"))) is Reason.BUSY


# What those in line could have instead


@pytest.mark.parametrize("order", [("alice",), ("bob", "alice"), ("alice", "bob")])
async def test_who_waits_is_offered_instead_what_they_get_when_they_have_left(order):
    """One of two GPUs is free, and whoever is the first collects it."""
    stage, places = Stage(*ONE_FREE), {it: ExitStack() for it in order}
    decider, one = stage.preflight.decider, proposal("alice", 1)
    for it in order:
        places[it].enter_context(stage.joining(it, 2))
    await settle()
    offered = decider.alternatives(proposal("alice", 2), Instead(ON_OFFER))
    told = decider.check(one)

    places["alice"].close()

    got = decider.check(one)
    assert got == told
    assert [it.grant.gpus for it in offered if it.grant.accelerator] == (
        [1] if got == Start(one.grant) else []
    )
    assert isinstance(got, Start) is (order == ("alice",))


async def test_those_ahead_of_another_choice_of_somebody_in_line_wait_for_the_same_nodes():
    stage = Stage(
        *FULL, ("Node", labelled(node("t", 1), {"gpu": "t4"})), ("Pod", pod("z", 1, on="t"))
    )
    with stage.joining("alice"), stage.joining("bob"), stage.joining("cid"):
        same, other = proposal("alice", 2), proposal("alice", 1, nodeSelector={"gpu": "t4"})

        assert stage.preflight.decider.check(same).in_line == 2
        assert stage.preflight.decider.check(other).in_line == 0


async def test_who_waits_with_two_servers_is_not_told_to_be_behind_oneself(stage):
    first, second = (stage.line.ticket(proposal(it), "ann", 1.0) for it in ("ann", "ann--2"))
    with stage.line.join(first, proposal("ann")), stage.line.join(second, proposal("ann--2")):
        assert stage.line.standing(second).place == 1
        with stage.joining("bob"):
            assert stage.line.standing(stage.tickets["bob"]).place == 3

        third = replace(proposal("ann--3"), owner="ann")
        assert stage.preflight.decider.check(third).in_line == 0
        assert stage.preflight.decider.check(replace(proposal("ann"), owner="ann")).in_line == 0
        assert stage.preflight.decider.check(replace(third, owner="bob")).in_line == 2

        await stage.ends("x")
        assert stage.line.places_of("ann") == 1  # the first is called first, even so


# Nodes to come


def in_use(node):
    """A pod that takes the only GPU of a node."""
    return "Pod", pod(f"on-{node}", 1, on=node)


@pytest.fixture
def full_pool():
    """A pool of two nodes, both in use; none can come unless one of them goes."""
    return Stage(named_node("n", 1), in_use("n"), named_node("m", 1), in_use("m"))


def goes(stage, node):
    """Let a node leave its pool, so that another can come, and tell nobody yet."""
    stage.view.state.remove("Pod", NAMESPACE, f"on-{node}")
    stage.view.state.remove("Node", "", node)


async def test_a_newcomer_gets_a_node_to_come_that_nobody_in_line_needs(full_pool):
    with full_pool.joins(of_pool("ann"), 1.0) as ann:
        await settle()
        goes(full_pool, "m")

        assert isinstance(full_pool.preflight.decider.check(of_pool("new", max_nodes=3)), Wait)
        assert ann.done()


@pytest.mark.parametrize("order", [("early", "late"), ("late", "early")])
async def test_a_node_to_come_is_for_the_earliest_whoever_joined_first(full_pool, order):
    """Of two lanes, each of which has waited for it."""
    places = {"early": (time.time() - 1000, 1.0), "late": (time.time() - 10, 2.0)}
    with ExitStack() as stack:
        called = {
            it: stack.enter_context(full_pool.joins(of_pool(it), *places[it])) for it in order
        }
        await settle()
        goes(full_pool, "m")
        await full_pool.wakes()

        assert [it for it in order if called[it].done()] == ["early"]
        assert isinstance(full_pool.preflight.decider.check(of_pool("early")), Wait)


async def test_two_nodes_to_come_are_for_the_first_two_in_line_before_newcomers():
    stage = Stage(*(it for name in "abc" for it in (named_node(name, 1), in_use(name))))
    since = time.time()
    with (
        stage.joins(of_pool("first", max_nodes=3), since - 3) as first,
        stage.joins(of_pool("second", max_nodes=3), since - 2) as second,
        stage.joins(of_pool("other", max_nodes=3), since - 1, weight=1.5) as other,
    ):
        await settle()
        goes(stage, "b")
        goes(stage, "c")

        assert refused(stage.preflight.decider.check(of_pool("new", max_nodes=3)))
        assert [it.done() for it in (first, second, other)] == [True, True, False]


async def test_while_places_are_awaited_nobody_else_gets_a_node_to_come():
    kept = awaiting_zoe()
    stage = Stage(*FULL, kept=kept)

    decision = stage.preflight.decider.check(of_pool("new"))
    assert (refused(decision), decision.in_line) == (Reason.BUSY, 1)

    kept.pop(("zoe", ""))
    assert isinstance(stage.preflight.decider.check(of_pool("new")), Wait)


async def test_who_starts_again_after_a_failed_start_doesnt_pass_those_in_line():
    """The reservation of the failed start outlasts it, until the view shows what became of it."""
    stage = Stage(("Node", node("n", 1)))
    again = proposal("again")
    assert isinstance(await stage.preflight.reserving.take(again), Start)
    stage.preflight.reservations.send(again.key)
    stage.preflight.reservations.end(again.key)

    with stage.joining("ann"):
        decision = stage.preflight.decider.check(again)

    assert (refused(decision), decision.in_line) == (Reason.BUSY, 1)


async def test_after_a_look_the_hub_does_something_else_for_nine_times_as_long(
    stage, clock, monkeypatch
):
    decide = Decider._on_nodes

    def slowly(*args):
        clock.worked += 1
        return decide(*args)

    with stage.joining("ann") as ann:
        await settle()
        monkeypatch.setattr(Decider, "_on_nodes", slowly)
        await stage.shows("Node", node("other", 0))  # the line is looked at, and nobody is called

        stage.view.remove_pod("x")
        await asyncio.sleep(8.9)
        assert not ann.done()

        assert await asyncio.wait_for(ann, 0.2) == ()


# Nobody in line takes, or keeps others from, more than their own part


def home(user, name="", namespace=NAMESPACE):
    """A user's home directory, for one pod alone: a claim, and the volume that is bound to it."""
    modes = ("ReadWriteOncePod",)
    made = claim(name or user, volume=user, modes=modes, namespace=namespace)
    yield "PersistentVolumeClaim", made
    yield "PersistentVolume", volume(user, accessModes=modes)


def all_known(stage):
    """Let the view know all kinds of objects."""
    for kind in KINDS:
        stage.view.state.mark_known(kind.name)
    return stage


def beside_anns_home_in_use(*more):
    """A node with two GPUs that a pod has, and one on which another server has Ann's home."""
    stage = Stage(
        ("Node", node("n", 2)),
        ("Node", node("m", 1)),
        *home("ann"),
        *more,
        ("Pod", pod("other-of-ann", 1, on="m", **uses("ann"))),
        ("Pod", pod("x", 2, on="n")),
    )
    return all_known(stage)


async def test_whose_home_is_in_use_by_another_server_keeps_nobody_else_waiting():
    stage = beside_anns_home_in_use(*home("bob"))
    with (
        stage.joining("ann", pod=uses("ann")) as ann,
        stage.joining("bob", pod=uses("bob")) as bob,
    ):
        await stage.ends("x")

        assert (ann.done(), bob.done()) == (False, True)


async def test_nor_does_it_if_all_homes_have_the_same_name_in_namespaces_of_their_own():
    other = pod("other", 1, on="m", **uses("home"))
    other["metadata"]["namespace"] = "ns-ann"
    stage = all_known(
        Stage(
            ("Node", node("n", 2)),
            ("Node", node("m", 1)),
            *home("ann", "home", "ns-ann"),
            *home("bob", "home", "ns-bob"),
            ("Pod", other),
            ("Pod", pod("x", 2, on="n")),
        )
    )
    wanted = {it: proposal(it, **uses("home")) for it in ("ann", "bob")}
    with (
        stage.joins(replace(wanted["ann"], namespace="ns-ann"), 1.0) as ann,
        stage.joins(replace(wanted["bob"], namespace="ns-bob"), 2.0) as bob,
    ):
        await stage.ends("x")

        assert (ann.done(), bob.done()) == (False, True)


ONE_EACH = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "labelSelector": {"matchLabels": {"component": "singleuser-server"}},
                    "matchLabelKeys": ["user"],
                    "topologyKey": HOSTNAME,
                }
            ]
        }
    }
}
"""A node has one server of each user at most."""


def of_user(plain, user):
    labels = {"component": "singleuser-server", "user": user}
    return {**plain, "metadata": {**plain["metadata"], "labels": labels}}


def one_each(name, make=proposal):
    """A server that starts on no node that has another one of its owner's."""
    made = make(name, **ONE_EACH)
    return replace(made, pod=of_user(made.pod, name))


@pytest.fixture
def one_of_each():
    """A node on which Ann has another server, and one without; all GPUs are in use."""
    return all_known(
        Stage(
            named_node("n", 2),
            named_node("m", 1),
            ("Pod", of_user(pod("other-of-ann", 1, on="n"), "ann")),
            ("Pod", pod("x", 1, on="n")),
            ("Pod", pod("y", 1, on="m")),
        )
    )


async def test_who_is_kept_off_a_node_by_another_own_server_keeps_nobody_else_waiting(one_of_each):
    with (
        one_of_each.joins(one_each("ann"), 1.0) as ann,
        one_of_each.joins(one_each("bob"), 2.0) as bob,
    ):
        await one_of_each.ends("x")
        assert (ann.done(), bob.done()) == (False, True)

        one_of_each.preflight.reservations.send(proposal("bob").key)
        await one_of_each.shows("Pod", of_user(pod("bob", 1, on="n", **ONE_EACH), "bob"))
        await one_of_each.ends("y")
        assert ann.done()


async def test_nor_does_that_keep_a_newcomer_waiting(one_of_each):
    with one_of_each.joins(one_each("ann"), 1.0):
        new = one_each("new")
        decision = one_of_each.preflight.decider.check(new)
        assert (refused(decision), decision.in_line) == (Reason.BUSY, 1)

        await one_of_each.ends("x")

        assert one_of_each.preflight.decider.check(new) == Start(new.grant)


async def test_a_pool_that_may_grow_is_tried_by_one_at_a_time_whatever_their_labels(growing):
    with growing.joins(one_each("ann"), 1.0) as ann, growing.joins(one_each("bob"), 2.0) as bob:
        await growing.wakes()
        assert (ann.done(), bob.done()) == (True, False)

        assert refused(growing.preflight.decider.check(one_each("new"))) is Reason.BUSY


def zones(*objects, capacity=False):
    """A node in each of two zones, both in use; the driver may tell its *capacity* there."""
    driver = {"metadata": {"name": "csi"}, "spec": {"storageCapacity": capacity}}
    return all_known(
        Stage(
            *(("Node", labelled(node(f"n{it}", 1), {"zone": it})) for it in "ab"),
            *(("Pod", pod(f"on-{it}", 1, on=f"n{it}")) for it in "ab"),
            ("StorageClass", WAIT),
            ("CSIDriver", driver),
            *objects,
        )
    )


def homes(names, **fields):
    return [("PersistentVolumeClaim", claim(it, namespace=NAMESPACE, **fields)) for it in names]


@pytest.fixture
def two_zones():
    """Two zones, and homes whose volumes the first servers place."""
    return zones(*homes(USERS))


async def binds_anns_home(stage):
    """Another server of hers has mounted it first, in zone a."""
    await stage.shows("PersistentVolume", volume("v", zone="a", claim="ann"))
    await stage.shows("PersistentVolumeClaim", claim("ann", volume="v", namespace=NAMESPACE))


async def test_whose_home_is_made_in_a_zone_meanwhile_keeps_nobody_waiting_for_the_others(
    two_zones,
):
    stage = two_zones
    with (
        stage.joining("ann", pod=uses("ann")) as ann,
        stage.joining("bob", pod=uses("bob")) as bob,
        stage.joining("cid", pod=uses("cid")) as cid,
    ):
        await binds_anns_home(stage)
        await stage.ends("on-b")
        await asyncio.sleep(1.5)
        assert (ann.done(), bob.done(), cid.done()) == (False, True, False)
        standing = [stage.line.standing(stage.tickets[it]).place for it in ("ann", "cid")]
        assert standing == [1, 2]

        stage.preflight.reservations.send(proposal("bob").key)
        await stage.shows("Pod", pod("bob", 1, on="nb", **uses("bob")))
        await stage.ends("on-a")
        await asyncio.sleep(1.5)
        assert (ann.done(), cid.done()) == (True, False)


async def test_who_needs_a_node_in_a_zone_by_now_is_told_if_the_last_one_goes(two_zones):
    with two_zones.joining("ann", pod=uses("ann")), two_zones.joining("bob", pod=uses("bob")):
        await binds_anns_home(two_zones)
        two_zones.view.remove_pod("on-a")
        two_zones.view.state.remove("Node", "", "na")
        await two_zones.wakes()
        await asyncio.sleep(1.5)

        lost_in = {
            it: two_zones.line.standing(two_zones.tickets[it]).lost_in for it in ("ann", "bob")
        }
        assert lost_in["bob"] is None
        assert 0 < lost_in["ann"] <= GONE_SECONDS


def space(zone, size):
    """What the driver of the class `wait` can still make in a zone."""
    return "CSIStorageCapacity", {
        "metadata": {"name": f"in-{zone}", "namespace": "kube-system"},
        "storageClassName": "wait",
        "nodeTopology": {"matchLabels": {"zone": zone}},
        "capacity": size,
    }


@pytest.fixture
def homes_to_be_made():
    """Two zones, of which zone b has too little space for Ann's first home."""
    spaces = space("a", "1Ti"), space("b", "50Gi")
    its_homes = *homes(["ann"], size="500Gi"), *homes(["bob", "cid"])
    return zones(*spaces, *its_homes, capacity=True)


async def test_who_needs_a_larger_home_keeps_nobody_off_a_node_with_space_for_smaller_ones(
    homes_to_be_made,
):
    stage = homes_to_be_made
    with (
        stage.joining("ann", pod=uses("ann")) as ann,
        stage.joining("bob", pod=uses("bob")) as bob,
    ):
        await stage.ends("on-b")
        assert (ann.done(), bob.done()) == (False, True)

        stage.preflight.reservations.send(proposal("bob").key)
        await stage.shows("Pod", pod("bob", 1, on="nb", **uses("bob")))
        await stage.ends("on-a")
        assert ann.done()


async def test_nor_does_that_keep_a_newcomer_off_it(homes_to_be_made):
    stage, new = homes_to_be_made, proposal("cid", **uses("cid"))
    with stage.joining("ann", pod=uses("ann")):
        await stage.ends("on-b")

        assert stage.preflight.decider.check(new) == Start(new.grant)


async def test_who_waits_for_a_volume_made_by_hand_keeps_nobody_off_another_s_node():
    """Each volume is kept for the home of one user, on one node."""
    local, volumes = {**WAIT, "provisioner": "kubernetes.io/no-provisioner"}, []
    for user, zone in (("ann", "a"), ("bob", "b")):
        made = volume(f"v-{user}", zone=zone)
        made["spec"]["claimRef"] = {"namespace": NAMESPACE, "name": user}
        volumes.append(("PersistentVolume", made))
    stage = all_known(
        Stage(
            *(("Node", labelled(node(f"n{it}", 1), {"zone": it})) for it in "ab"),
            *(("Pod", pod(f"on-{it}", 1, on=f"n{it}")) for it in "ab"),
            *(("StorageClass", local), *volumes),
            *(("PersistentVolumeClaim", claim(it, namespace=NAMESPACE)) for it in ("ann", "bob")),
        )
    )
    with (
        stage.joining("ann", pod=uses("ann")) as ann,
        stage.joining("bob", pod=uses("bob")) as bob,
    ):
        await stage.ends("on-b")

        assert (ann.done(), bob.done()) == (False, True)


async def test_whose_home_is_being_deleted_keeps_those_with_homes_waiting_no_moment(two_zones):
    with (
        two_zones.joining("ann", pod=uses("ann")) as ann,
        two_zones.joining("bob", pod=uses("bob")) as bob,
    ):
        going = claim("ann", namespace=NAMESPACE, deletionTimestamp="2026-01-01T00:00:00Z")
        await two_zones.shows("PersistentVolumeClaim", going)
        await two_zones.ends("on-b")

        assert (ann.done(), bob.done()) == (False, True)


def of_priority(name, value, **policy):
    return proposal(name, priority=value, **policy)


@pytest.fixture
def held_by_teachers():
    """A node whose only GPU has somebody whom nobody may preempt."""
    return all_known(Stage(named_node("n", 1), ("Pod", pod("x", 1, on="n", priority=1000))))


def goes_to_a_student(stage):
    """Somebody whom teachers may preempt gets the GPU, before anybody in line is asked."""
    stage.view.state.remove("Pod", NAMESPACE, "x")
    stage.view.put("Pod", pod("z", 1, on="n", priority=0))


async def test_who_may_preempt_by_now_goes_on_whoever_waits_ahead_and_may_not(held_by_teachers):
    with (
        held_by_teachers.joins(of_priority("sam", 0), 1.0) as sam,
        held_by_teachers.joins(of_priority("lea", 1000, preemptionPolicy="Never"), 2.0) as lea,
        held_by_teachers.joins(of_priority("tess", 1000), 3.0) as tess,
    ):
        goes_to_a_student(held_by_teachers)
        await held_by_teachers.wakes()

        assert [it.done() for it in (sam, lea, tess)] == [False, False, True]
        new = held_by_teachers.preflight.decider.check(of_priority("new", 1000))
        assert isinstance(new.notes[0], AfterPreemption)


def landing_on_a_or_b() -> Stage:
    """Two nodes, with a GPU free for certain only once it is clear on which p starts."""
    return all_known(
        Stage(
            *(named_node(it, 2) for it in "ab"),
            *(("Pod", pod(f"z{n}", 1, on=it, priority=-10)) for n, it in enumerate("abb")),
        )
    )


async def lands(stage: Stage, node: str) -> None:
    stage.preflight.reservations.send(proposal("p").key)
    await stage.ends("z1", "z2")
    await stage.shows("Pod", pod("p", 2, on=node, priority=0))


async def test_no_newcomer_of_higher_priority_passes_who_is_called_in_a_moment() -> None:
    """No priority keeps Sam off the free GPU."""
    stage = landing_on_a_or_b()
    await stage.preflight.reserving.take(proposal("p", 2, priority=0))
    with stage.joins(of_priority("sam", 0), time.time()) as sam:
        await stage.wakes()
        new = stage.preflight.decider.check(of_priority("new", 1000))
        assert (refused(new), sam.done()) == (Reason.BUSY, False)

        await lands(stage, "b")
        assert sam.done()


async def test_nor_does_anybody_behind_in_line() -> None:
    stage = landing_on_a_or_b()
    await stage.preflight.reserving.take(proposal("p", 2, priority=0))
    now = time.time()
    with (
        stage.joins(of_priority("sam", 0), now) as sam,
        stage.joins(of_priority("tess", 1000), now + 1) as tess,
    ):
        await stage.wakes()
        assert not tess.done()

        await lands(stage, "b")
        assert (sam.done(), tess.done()) == (True, False)


async def test_people_of_all_priorities_are_ahead_of_each_other_and_called_in_their_order(
    held_by_teachers,
):
    with (
        held_by_teachers.joins(of_priority("sam", 0), 1.0) as sam,
        held_by_teachers.joins(of_priority("tess", 1000), 2.0) as tess,
    ):
        assert held_by_teachers.line.standing(held_by_teachers.tickets["tess"]).place == 2
        new = held_by_teachers.preflight.decider.check(of_priority("new", 1000))
        assert (refused(new), new.in_line) == (Reason.BUSY, 2)

        await held_by_teachers.ends("x")

        assert (sam.done(), tess.done()) == (True, False)


async def test_a_pool_that_may_grow_is_tried_by_one_at_a_time_whatever_their_priorities(growing):
    ann, bob = of_priority("ann", 0), of_priority("bob", 1000, preemptionPolicy="Never")
    with growing.joins(ann, 1.0) as ann, growing.joins(bob, 2.0) as bob:
        await growing.wakes()
        assert (ann.done(), bob.done()) == (True, False)

        new = of_priority("new", 10, preemptionPolicy="Never")
        assert refused(growing.preflight.decider.check(new)) is Reason.BUSY


async def test_room_kept_for_a_pod_of_middle_priority_is_for_those_above_it(held_by_teachers):
    """kube-scheduler leaves it to those alone, and so does a newcomer's decision."""
    middle = pod("middle", 1, priority=500)
    middle["status"] = {"phase": "Pending", "nominatedNodeName": "n"}
    await held_by_teachers.shows("Pod", middle)
    now = time.time()  # nobody has waited for long enough to collect
    with held_by_teachers.joins(of_priority("sam", 0), now) as sam:
        with held_by_teachers.joins(of_priority("tess", 1000), now + 1) as tess:
            await held_by_teachers.ends("x")
            await asyncio.sleep(PATIENCE_SECONDS + 2)  # by then, it would be on the node
            assert (sam.done(), tess.done()) == (False, True)

        held_by_teachers.preflight.reservations.release(proposal("tess").key)
        new = of_priority("new", 1000)
        assert held_by_teachers.preflight.decider.check(new) == Start(new.grant)


async def test_of_whom_nobody_can_tell_whether_they_fit_keep_nobody_else_waiting(stage):
    """Ann's server needs devices of a claim, too, which the hub doesn't count."""
    needs_devices = {"resourceClaims": [{"name": "gpus", "resourceClaimName": "ann"}]}
    now = time.time()  # nobody has waited for long enough to collect
    with (
        stage.joining("ann", since=now, pod=needs_devices) as ann,
        stage.joining("bob", since=now + 1) as bob,
    ):
        await stage.ends("x")
        assert (ann.done(), bob.done()) == (False, True)

        await stage.ends("y")
        await asyncio.sleep(UNSURE_SECONDS + 2)
        assert ann.done()


async def test_who_only_waits_for_the_home_collects_no_gpus_until_it_is_free():
    stage = beside_anns_home_in_use()
    with stage.joining("ann", 2, pod=uses("ann")) as ann:
        await stage.ends("x")
        assert stage.preflight.decider.check(proposal("bob")) == Start(proposal("bob").grant)

        await stage.shows("Pod", pod("bob", 1, on="n"))
        await stage.ends("other-of-ann")
        assert stage.line.standing(stage.tickets["ann"]).kept == 1
        await stage.ends("bob")

        assert ann.done()


async def test_what_is_left_beside_those_who_wait_is_given_once_until_the_view_shows_it():
    def asks(gpus, memory):
        amounts = {GPU: str(gpus), "memory": memory}
        return {"containers": [{"name": "c", "resources": {"requests": amounts}}]}

    stage = Stage(("Node", node("n", 4)), ("Pod", pod("x", on="n", **asks(0, "200Gi"))))
    with (
        stage.joining("large", pod=asks(3, "100Gi")) as large,
        stage.joining("one", pod=asks(1, "0")) as one,
        stage.joining("other", pod=asks(1, "0")) as other,
    ):
        await settle()

        assert [it.done() for it in (large, one, other)] == [False, True, False]


async def test_who_collects_is_offered_what_is_free_elsewhere():
    stage = Stage(
        ("Node", labelled(node("n", 2), {"gpu": "a100"})),
        ("Pod", pod("x", 1, on="n")),
        ("Node", labelled(node("t", 1), {"gpu": "t4"})),
        ("Node", labelled(node("u", 2), {"gpu": "t4"})),
        ("Pod", pod("y", 2, on="u")),
    )
    with (
        stage.joining("alice", 2, pod={"nodeSelector": {"gpu": "a100"}}),
        stage.joining("bob", 2, pod={"nodeSelector": {"gpu": "t4"}}),
    ):
        await settle()
        other = proposal("alice", 1, nodeSelector={"gpu": "t4"})

        assert isinstance(stage.preflight.decider.check(other), Start)


async def test_who_waits_for_a_profile_counts_by_the_resource_of_its_gpus(stage):
    with stage.joins(replace(proposal("ann"), profile="large"), 1.0):
        assert stage.line.waiting() == {"nvidia.com/gpu": 1}


async def test_the_nodes_of_a_crowd_with_homes_of_their_own_are_looked_up_once_for_all(
    stage, monkeypatch
):
    """Each who waits asks for the place all the time."""
    with ExitStack() as joined:
        for number in range(50):
            home = {"name": "home", "persistentVolumeClaim": {"claimName": f"home-{number}"}}
            joined.enter_context(stage.joining(f"p{number}", pod={"volumes": [home]}))
        asked, possible = [], LineRoom.possible
        monkeypatch.setattr(
            LineRoom, "possible", lambda room, it: asked.append(it) or possible(room, it)
        )

        places = [stage.line.standing(it).place for it in stage.tickets.values()]

    assert places == [*range(1, 51)]
    assert len(asked) <= 50 + 3 * 50


def test_a_line_itself_answers_all_that_is_asked_of_those_who_wait():
    asked = {name for name, it in vars(WhoWaits).items() if callable(it) or type(it) is property}
    assert asked <= vars(WaitingLine).keys()


async def test_who_needs_no_room_is_not_behind_who_does(stage):
    with stage.joining("ann") as ann:
        bobs = proposal("bob")
        ticket = stage.line.ticket(bobs, "bob", time.time() + 1, is_checked=False)
        with stage.line.join(ticket, bobs) as bob:
            await settle()
            assert bob.done()
            assert not ann.done()
