"""The hub looks which servers use their GPUs, warns owners, and says what it knows."""

import asyncio
import time
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from gpuspawner.kube.servers import ServerAnnotations
from gpuspawner.policies.charges import Charge
from gpuspawner.policies.policies import Measure, What
from gpuspawner.reservations.granted import Granted, WhenIdle
from gpuspawner.use import watching
from gpuspawner.use.idle_servers import DeviceUse, Window
from gpuspawner.use.prometheus import UseUnknownError
from gpuspawner.use.watching import UseWatch
from tests.unit.makers.policy_pods import read, started
from tests.unit.use.facts import fact

NOW = 1_800_000_000.0
RULE = WhenIdle(after=3600, after_if_others_wait=1200, warning=600, keeps=1, kept=1800)
ANN, BOB, EVE = (("hub", f"jupyter-{it}") for it in ("ann", "bob", "eve"))
AWAY, LONG = 0, 1e9


class PlayedSource:
    """Says of each pod what a test says: its use from 0 to 1; nothing of other pods."""

    def __init__(self):
        self.used = {}
        self.asked = []
        self.longest = LONG  # it has an answer for no longer window
        self.ago = 0  # a use was so many seconds ago
        self.meanwhile = lambda: None

    async def window(self, seconds):
        self.asked.append(seconds)
        self.meanwhile()
        if seconds > self.longest:
            raise UseUnknownError("too many samples")
        devices = {
            ("hub", f"jupyter-{name}"): [
                DeviceUse((f"GPU-{name}", ""), used if seconds >= self.ago else 0.0, 1.0)
            ]
            for name, used in self.used.items()
        }
        return Window(seconds, NOW, devices)


class Stage:
    """A hub with servers of ann's and bob's, which have a GPU each."""

    def __init__(self, patch, rule=RULE):
        self.source = PlayedSource()
        self.noted = []
        self.told = []
        self.now = 0.0
        self.waiting = {}
        self.inactive = set()
        self.tasks = []
        self.pods = {("hub", f"jupyter-{it}"): server_pod(it, 9 * 3600) for it in ("ann", "bob")}
        self.charges = {key: charge("a100") for key in self.pods}
        self.sees_pods = True
        running = SimpleNamespace(
            accounts=SimpleNamespace(
                ledger=SimpleNamespace(pods=self.pods, devices=lambda _: 1),
                usage=SimpleNamespace(pods=self.charges),
                is_current=lambda: self.sees_pods,
            ),
            offers=SimpleNamespace(accelerators={"a100", "t4"}),
            preflight=SimpleNamespace(line=SimpleNamespace(waiting=lambda: self.waiting)),
            note=lambda it, spawner, **_: self.noted.append((it.value, spawner.user.name)),
            run=lambda task: self.tasks.append(asyncio.ensure_future(task)),
        )
        self.users = {it: user(it, rule) for it in ("ann", "bob")}
        patch.setattr(
            watching, "hub", lambda: SimpleNamespace(tornado_settings={"users": self.users})
        )
        patch.setattr(watching, "unused_for", lambda _: frozenset(self.inactive))
        self.watch = UseWatch(running, self.source, self.told.append, lambda: self.now)

    def replace_pod(self, name, seconds):
        """Let a server have a pod that has run for so many seconds."""
        self.pods["hub", f"jupyter-{name}"] = server_pod(name, seconds)

    async def look(self, seconds_later=60, **used):
        self.now += seconds_later
        self.source.used = used
        await self.watch.look()
        await asyncio.gather(*self.tasks)

    def pass_by(self, seconds):
        self.now += seconds

    async def look_each_minute(self, minutes, **used):
        for _ in range(minutes):
            await self.look(**used)


@pytest.fixture
def stage(monkeypatch):
    return Stage(monkeypatch)


@pytest.fixture
def unruled(monkeypatch):
    """A hub in which no policy gives servers back."""
    return Stage(monkeypatch, rule=None)


def user(name, rule):
    granted = Granted("a100", idle=rule)
    spawner = SimpleNamespace(name="", namespace="hub", pod_name=f"jupyter-{name}", ready=True)
    spawner.pending = None
    spawner.gpuspawner_gates = SimpleNamespace(server_state=SimpleNamespace(granted=granted))
    spawner.user = SimpleNamespace(name=name, spawners={"": spawner})
    return spawner.user


def charge(accelerator):
    one = {Measure(What.GPUS, "nvidia.com/gpu"): 1}
    return Charge(frozenset({"ann"}), amounts=one, accelerator=accelerator)


def server_pod(name, seconds):
    """Make a pod whose image was pulled for an hour before it has run for so many seconds."""
    pulled, began = (
        datetime.fromtimestamp(NOW - it, UTC).isoformat() for it in (seconds + 3600, seconds)
    )
    metadata = {"namespace": "hub", "name": f"jupyter-{name}", "uid": f"{name} {began}"}
    return read({"metadata": metadata, "status": started(pulled, began)})


def known(stage):
    every = ((key, stage.watch.find(key)) for key in stage.watch._servers)
    return {key: it for key, it in every if it is not None}


def stands(stage):
    watch = stage.watch
    return {it.server[0]: (it.state, watch.stops_in(it)) for it in known(stage).values()}


def may_stop(stage):
    return stage.watch.may_stop(known(stage)[ANN])


async def stays(stage):
    return {it.server[0]: it.stays async for it in stage.watch.standings()}


async def test_who_does_not_use_a_gpu_is_warned_and_others_are_not(stage):
    await stage.look(ann=0.0, bob=0.7)
    await stage.look(ann=0.0, bob=0.7)

    assert stage.noted == [("idle", "ann"), ("warned", "ann")]
    assert stands(stage) == {"ann": ("unused", 540), "bob": ("used", None)}
    assert [it["user"] for it in stage.told] == ["ann"]
    assert stage.told[0]["stops_in_seconds"] == 600


async def test_a_server_is_stopped_only_by_a_look_that_began_after_the_warning_was_over(stage):
    """It may have computed since an earlier one read its use: Prometheus may be slow."""
    await stage.look_each_minute(10, ann=0.0)
    stage.source.meanwhile = lambda: stage.pass_by(30)

    await stage.look(59, ann=0.0)
    assert stands(stage)["ann"] == ("unused", 0)
    assert not may_stop(stage)
    await stage.look(ann=0.0)
    assert may_stop(stage)
    await stage.look(ann=0.5)
    assert not may_stop(stage)


async def test_a_server_is_stopped_also_if_each_look_takes_more_than_a_minute(stage, monkeypatch):
    """Prometheus may need 20 s for each of many queries."""
    stage.source.used = {"ann": 0.0}
    stage.source.meanwhile = lambda: stage.pass_by(80)

    async def pass_by(seconds):
        stage.pass_by(seconds)
        if stage.now > 2000:
            raise asyncio.CancelledError

    monkeypatch.setattr(asyncio, "sleep", pass_by)
    with pytest.raises(asyncio.CancelledError):
        await stage.watch.run()

    assert stage.noted.count(("warned", "ann")) == 1
    assert may_stop(stage)


async def test_a_warning_ends_if_no_look_ends_for_minutes(stage):
    """Nobody could keep the server meanwhile, so its owner gets the whole time again."""
    await stage.look(ann=0.0)

    await stage.look(180, ann=0.0)
    assert stands(stage)["ann"] == ("unused", 600)
    assert stage.noted.count(("warned", "ann")) == 2

    await stage.look(179, ann=0.0)
    assert stands(stage)["ann"] == ("unused", 421)


async def test_what_an_owner_keeps_stays_kept_if_no_look_ends_for_minutes(stage):
    await stage.look(ann=0.0)
    assert stage.watch.keep(ANN)

    await stage.look(1799, ann=0.0)
    assert stands(stage)["ann"] == ("unused", None)
    await stage.look(1, ann=0.0)
    assert stands(stage)["ann"] == ("unused", 600)
    assert not stage.watch.keep(ANN)


async def test_an_owner_keeps_the_server_as_often_as_the_policy_says(stage):
    await stage.look(ann=0.0, bob=0.5)

    assert stage.watch.keep(ANN)
    assert not stage.watch.keep(ANN)
    assert not stage.watch.keep(BOB)

    await stage.look(1800, ann=0.0)
    assert not stage.watch.keep(ANN)
    assert [it for it, _ in stage.noted].count("kept") == 1


async def test_a_server_that_the_culler_may_stop_by_now_is_not_kept_any_more(stage):
    """Otherwise the page says that the server is kept, and the culler stops it anyway."""
    await stage.look_each_minute(11, ann=0.0)

    assert may_stop(stage)
    assert not stage.watch.keep(ANN)
    assert ("kept", "ann") not in stage.noted


async def test_a_use_from_before_a_server_was_kept_does_not_let_it_be_kept_once_more(stage):
    """While nobody waits, an hour counts, in which it was used; only 20 minutes count before."""
    stage.source.ago, stage.waiting = 1800, {"a100": 1}
    await stage.look(ann=0.5)
    assert stage.watch.keep(ANN)

    stage.waiting = {}
    await stage.look(ann=0.5)
    await stage.look(1800, ann=0.5)
    assert stands(stage)["ann"] == ("used", None)
    stage.waiting = {"a100": 1}
    await stage.look(ann=0.5)
    assert stands(stage)["ann"] == ("unused", 600)
    assert not stage.watch.keep(ANN)


async def test_a_use_since_a_server_was_kept_counts_also_while_nobody_waits(stage):
    stage.waiting = {"a100": 1}
    await stage.look(ann=0.0)
    assert stage.watch.keep(ANN)

    stage.waiting = {}
    await stage.look(ann=0.5)
    assert stage.noted[-1] == ("used", "ann")
    stage.source.asked.clear()
    await stage.look(ann=0.5)

    assert stage.source.asked == [3600]


async def test_a_clock_that_was_ahead_keeps_no_server_for_longer_than_its_owner_has(stage):
    stage.watch.restore([fact("kept", time.time() + 10 * 86400, "ann", seconds=1800)])

    await stage.look(1799, ann=0.0)
    assert stands(stage)["ann"] == ("unused", None)
    await stage.look(1, ann=0.0)
    assert stands(stage)["ann"] == ("unused", 600)


async def test_a_server_stays_for_as_long_as_its_owner_kept_it_also_if_the_hub_restarts(stage):
    now = time.time()
    kept = [fact("kept", now - 600, it, seconds=1800) for it in ("ann", "bob")]

    stage.watch.restore([*kept, fact("ended", now - 500, "bob")])
    await stage.look(60, ann=0.0, bob=0.0)
    assert stands(stage) == {"ann": ("unused", None), "bob": ("unused", 600)}

    await stage.look(1200, ann=0.0)
    assert stands(stage)["ann"] == ("unused", 600)


async def test_how_often_an_owner_has_kept_a_server_is_known_after_a_restart_until_it_is_used(
    monkeypatch,
):
    now, before = time.time(), Stage(monkeypatch)
    await before.look(ann=0.0, bob=0.0)
    assert before.watch.keep(ANN)
    assert before.watch.keep(BOB)
    await before.look(ann=0.0, bob=0.5)
    await before.look(ann=0.0, bob=0.5)
    assert before.noted[-3:] == [("kept", "ann"), ("kept", "bob"), ("used", "bob")]

    stage = Stage(monkeypatch)
    stage.watch.restore([fact(it, now - 1800, user, seconds=60) for it, user in before.noted])
    await stage.look(ann=0.0, bob=0.0)

    assert stands(stage) == {"ann": ("unused", 600), "bob": ("unused", 600)}
    assert not stage.watch.keep(ANN)
    assert stage.watch.keep(BOB)


@pytest.mark.parametrize("recorded_as", ["ann", "before"], ids=["as now", "renamed since"])
async def test_what_its_owner_kept_before_the_hub_s_start_is_that_server_and_not_the_next(
    recorded_as, stage
):
    """The record has the name that the owner had when the server started, and so has its pod."""
    pod = stage.pods[ANN]
    metadata = replace(pod.metadata, annotations=ServerAnnotations(user="before"))
    stage.pods[ANN] = replace(pod, metadata=metadata)
    stage.watch.restore([fact("kept", time.time(), recorded_as, seconds=7200)])

    await stage.look(ann=0.0)
    assert stands(stage)["ann"] == ("unused", None)
    stage.replace_pod("ann", 3600)
    await stage.look(ann=0.0)
    assert stands(stage)["ann"] == ("unused", 600)


async def test_what_an_owner_keeps_stays_kept_if_its_owner_is_renamed(stage):
    await stage.look(ann=0.0)
    assert stage.watch.keep(ANN)

    stage.users["ann"].name = "anna"
    await stage.look(ann=0.0)
    assert stands(stage)["anna"] == ("unused", None)

    await stage.look(1800, ann=0.0)
    assert stands(stage)["anna"] == ("unused", 600)
    assert not stage.watch.keep(ANN)


async def test_a_window_that_prometheus_never_answers_is_logged_once(stage, caplog):
    stage.source.longest = 1200
    stage.users["bob"] = user("bob", None)
    stage.waiting = {"a100": 1}  # 20 minutes for ann, an hour for bob

    await stage.look()
    await stage.look()

    [line] = caplog.messages
    assert "use over the last 60 min isn't known: too many samples" in line


async def test_each_time_that_prometheus_goes_away_is_logged(stage, caplog):
    for longest in (AWAY, LONG, AWAY):
        stage.source.longest = longest
        stage.waiting = {} if longest else {"a100": 1}
        await stage.look(ann=0.0)

    assert len(caplog.messages) == 2


async def test_while_prometheus_is_away_nobody_is_warned_or_stopped(stage, caplog):
    await stage.look(ann=0.0)
    stage.source.longest = AWAY

    await stage.look(600, ann=0.0)
    await stage.look(600, ann=0.0)

    assert stands(stage)["ann"] == ("unknown", None)
    [line] = caplog.messages
    assert "gpu_use.prometheus" in line


async def test_a_server_has_to_stay_until_somebody_has_looked_and_while_its_owner_keeps_it(stage):
    assert await stays(stage) == {"ann": True, "bob": True}

    await stage.look(ann=0.0, bob=0.5)
    assert await stays(stage) == {"ann": False, "bob": False}

    stage.watch.keep(ANN)
    stage.source.longest = AWAY
    await stage.look(1200)
    assert await stays(stage) == {"ann": True, "bob": False}
    await stage.look(1800)
    assert await stays(stage) == {"ann": False, "bob": False}

    stage.replace_pod("bob", 60)
    assert await stays(stage) == {"ann": False, "bob": True}


async def test_a_server_that_the_hub_s_start_still_checks_has_to_stay(stage):
    """The culler may ask for all servers once, and stop some of them only seconds later."""
    stage.users["ann"].spawners[""].ready = False
    stage.users["ann"].spawners[""].pending = "check"

    await stage.look(bob=0.5)

    assert await stays(stage) == {"ann": True, "bob": False}
    assert list(known(stage)) == [BOB]


async def test_idle_gpus_add_up_by_the_accelerators_that_the_census_counts(unruled):
    """The dashboard divides the one by the other; the use of a profile's is its resource's."""
    unruled.charges[ANN] = charge("gpu-large")
    on_t4 = {(ANN, "nvidia.com/gpu"): "t4"}
    unruled.watch._counted_as = lambda *it: on_t4.get(it, it[1])

    await unruled.look(ann=0.0, bob=0.0)
    await unruled.look(ann=0.0, bob=0.0)

    assert unruled.watch.idle_gpu_seconds == {"t4": 60, "a100": 60}


async def test_the_time_between_the_beginnings_of_two_looks_counts_as_idle(stage):
    await stage.look(ann=0.0)
    stage.source.meanwhile = lambda: stage.pass_by(20)

    await stage.look(100, ann=0.0)
    await stage.look(30, ann=0.0)

    assert stage.watch.idle_gpu_seconds == {"a100": 150}


async def test_what_a_look_says_is_as_old_as_its_beginning(stage):
    stage.source.meanwhile = lambda: stage.pass_by(100)
    await stage.look(ann=0.0)

    stage.now += 79
    assert known(stage)
    stage.now += 1
    assert not known(stage)
    assert not stage.watch.keep(ANN)


async def test_a_shorter_time_counts_while_others_wait_for_what_it_has(stage):
    await stage.look(ann=0.5)
    stage.waiting = {"a100": 1}

    await stage.look(ann=0.5)

    assert stage.source.asked == [3600, 1200]


@pytest.mark.parametrize("waits_for", ["nvidia.com/gpu", "t4"])
async def test_a_shorter_time_counts_whatever_the_line_calls_what_it_has(waits_for, stage):
    """A profile waits for a resource, and a server of any model has the GPUs of its node."""
    stage.watch._counted_as = lambda key, kind: "t4" if key == ANN else kind
    stage.charges[BOB] = Charge(frozenset({"bob"}), accelerator="a100")
    stage.waiting = {waits_for: 1}

    await stage.look(ann=0.0, bob=0.0)

    assert sorted(stage.source.asked) == [1200, 3600]
    assert known(stage)[ANN].use.seconds == 1200


async def test_without_a_policy_the_use_is_known_and_nobody_is_warned(unruled):
    await unruled.look(ann=0.0, bob=0.5)

    assert stands(unruled) == {"ann": ("unused", None), "bob": ("used", None)}
    assert not unruled.noted


async def test_the_pull_of_the_image_does_not_count_as_time_without_use(stage):
    """The exporter names the pod from then on: its node has given it the GPU already."""
    stage.replace_pod("ann", seconds=3599)
    await stage.look(ann=0.0)
    assert stands(stage)["ann"] == ("unknown", None)

    stage.replace_pod("ann", seconds=3600)
    await stage.look(ann=0.0)
    assert stands(stage)["ann"] == ("unused", 600)


async def test_a_new_pod_of_the_same_name_begins_anew(stage):
    await stage.look(ann=0.0)
    stage.replace_pod("ann", seconds=3700)

    await stage.look(700, ann=0.0)

    assert stands(stage)["ann"] == ("unused", 600)


async def test_a_server_that_starts_again_has_no_warning_of_the_one_before(stage):
    """Also not until the next look: the culler may ask before it."""
    await stage.look_each_minute(11, ann=0.0)
    assert stands(stage)["ann"] == ("unused", 0)

    stage.replace_pod("ann", seconds=30)

    assert ANN not in known(stage)
    assert not stage.watch.keep(ANN)


async def test_nobody_is_warned_of_a_server_that_ended_while_prometheus_was_asked(stage):
    stage.source.meanwhile = lambda: stage.replace_pod("ann", seconds=1)

    await stage.look(ann=0.0)

    assert not stage.noted
    assert list(known(stage)) == [BOB]


async def test_an_owner_gets_one_notice_though_prometheus_fails_every_other_minute(stage):
    await stage.look(ann=0.0)

    for minute in range(58):
        stage.source.longest = LONG if minute % 2 else AWAY
        await stage.look(ann=0.0)

    assert stage.noted.count(("warned", "ann")) > 1
    assert [it["user"] for it in stage.told] == ["ann"]

    stage.source.longest = AWAY
    await stage.look(3600 - 58 * 60)
    stage.source.longest = LONG
    await stage.look(ann=0.0)
    assert [it["user"] for it in stage.told] == ["ann", "ann"]


async def test_an_owner_who_has_used_the_gpu_gets_a_notice_of_the_next_warning(stage):
    """Also if it comes early, because others wait."""
    stage.waiting = {"a100": 1}
    await stage.look(ann=0.0)
    await stage.look(180, ann=0.5)

    await stage.look(1200, ann=0.0)

    assert stands(stage)["ann"] == ("unused", 600)
    assert [it["user"] for it in stage.told] == ["ann", "ann"]


async def test_an_owner_who_keeps_a_server_gets_a_notice_of_the_next_warning(stage):
    await stage.look(ann=0.0)
    assert stage.watch.keep(ANN)

    await stage.look(1800, ann=0.0)

    assert [it["user"] for it in stage.told] == ["ann", "ann"]


async def test_the_line_counts_as_idle_who_does_not_use_a_gpu_and_else_who_is_inactive(stage):
    stage.inactive = {BOB, EVE}

    await stage.look(ann=0.0, bob=0.7)

    assert stage.watch.unused_for(1800) == {ANN, EVE}
    assert stage.watch.unused_for(7200) == {EVE}


async def test_where_gpus_were_not_looked_at_for_so_long_activity_says_who_is_idle(stage):
    stage.waiting, stage.inactive = {"a100": 1}, {ANN}  # so that only 20 minutes are looked at

    await stage.look(ann=0.0, bob=0.0)
    assert stage.watch.unused_for(1800) == {ANN}
    stage.source.longest = AWAY
    await stage.look()
    assert stage.watch.unused_for(1800) == {ANN}


async def test_an_inactive_server_whose_gpu_was_used_meanwhile_is_not_idle(stage):
    stage.waiting, stage.inactive = {"a100": 1}, {ANN}

    await stage.look(ann=0.9)
    await stage.look(seconds_later=1500, ann=0.0)
    assert stage.watch.unused_for(1800) == frozenset()
    await stage.look(seconds_later=300, ann=0.0)
    assert stage.watch.unused_for(1800) == {ANN}


async def test_the_gpus_of_a_stopped_server_are_idle_no_longer(stage):
    await stage.look(ann=0.0)
    del stage.pods[ANN]

    await stage.look()

    assert list(known(stage)) == [BOB]
    assert not stage.watch.idle_gpu_seconds


async def test_the_time_of_unused_gpus_adds_up_by_accelerator(unruled):
    await unruled.look(ann=0.0, bob=0.5)
    await unruled.look(60, ann=0.0, bob=0.0)
    await unruled.look(600, ann=0.0, bob=0.0)  # nobody knows what was in these ten minutes
    await unruled.look(30, ann=0.5)

    assert unruled.watch.idle_gpu_seconds == {"a100": 120}
