"""The hub looks which servers use their GPUs, warns owners, and says what it knows."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from gpuspawner.kube.servers import ServerAnnotations, ServerPod
from gpuspawner.policies.charges import Charge
from gpuspawner.policies.policies import Measure, What
from gpuspawner.reservations.granted import Granted, WhenIdle
from gpuspawner.use import watching
from gpuspawner.use.idle_servers import DeviceUse, UseState, Window
from gpuspawner.use.prometheus import UseUnknownError
from gpuspawner.use.watching import UseWatch, Watched
from tests.unit.makers.policy_pods import read, started
from tests.unit.use.facts import fact

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpuspawner.kube.meta import Key

NOW = 1_800_000_000.0
RULE = WhenIdle(after=3600, after_if_others_wait=1200, warning=600, keeps=1, kept=1800)
ANN, BOB = ("hub", "jupyter-ann"), ("hub", "jupyter-bob")


class PlayedSource:
    """Says of each pod what a test says: its use from 0 to 1; nothing of other pods."""

    def __init__(self) -> None:
        self.used: dict[str, float] = {}
        self.asked: list[float] = []
        self.is_away = False
        self.meanwhile: Callable[[], object] = lambda: None

    async def window(self, seconds: float) -> Window:
        self.asked.append(seconds)
        self.meanwhile()
        if self.is_away:
            raise UseUnknownError("http://prometheus: refused")
        devices = {
            ("hub", f"jupyter-{name}"): [DeviceUse((f"GPU-{name}", ""), used, 1.0)]
            for name, used in self.used.items()
        }
        return Window(seconds, NOW, devices)


class Stage:
    """A hub with servers of ann's and bob's, which have a GPU each."""

    def __init__(self, patch: pytest.MonkeyPatch, rule: WhenIdle | None = RULE) -> None:
        self.source = PlayedSource()
        self.noted: list[tuple[str, str]] = []
        self.told: list[Mapping[str, Any]] = []
        self.now = 0.0
        self.waiting: dict[str, int] = {}
        self.tasks: list[asyncio.Task[None]] = []
        self.pods = {("hub", f"jupyter-{it}"): server_pod(it, 9 * 3600) for it in ("ann", "bob")}
        self.charges = {key: charge("a100") for key in self.pods}
        self.sees_pods = True
        running: Any = SimpleNamespace(
            accounts=SimpleNamespace(
                ledger=SimpleNamespace(pods=self.pods, devices=lambda _: 1),
                usage=SimpleNamespace(pods=self.charges),
                is_current=lambda: self.sees_pods,
            ),
            offers=SimpleNamespace(accelerators={"a100", "t4"}),
            preflight=SimpleNamespace(line=SimpleNamespace(waiting=lambda: self.waiting)),
            note=lambda happened, spawner, **_: self.noted.append(
                (happened.value, spawner.user.name)
            ),
            run=lambda task: self.tasks.append(asyncio.ensure_future(task)),
        )
        self.users = {it: user(it, rule) for it in ("ann", "bob")}
        patch.setattr(watching, "hub", lambda: SimpleNamespace(users=self.users))
        self.watch = UseWatch(running, self.source, self.told.append, lambda: self.now)

    def replace_pod(self, name: str, seconds: float) -> None:
        """Let a server have a pod that has run for so many seconds."""
        self.pods["hub", f"jupyter-{name}"] = server_pod(name, seconds)

    async def look(self, seconds_later: float = 60, **used: float) -> None:
        self.now += seconds_later
        self.source.used = used
        await self.watch.look()
        await asyncio.gather(*self.tasks)

    def pass_by(self, seconds: float) -> None:
        self.now += seconds

    async def look_each_minute(self, minutes: int, **used: float) -> None:
        for _ in range(minutes):
            await self.look(**used)


def user(name: str, rule: WhenIdle | None) -> SimpleNamespace:
    granted = Granted("a100", idle=rule)
    gates = SimpleNamespace(server_state=SimpleNamespace(granted=granted))
    owner = SimpleNamespace(name=name)
    owner.spawners = {
        "": SimpleNamespace(
            name="",
            user=owner,
            namespace="hub",
            pod_name=f"jupyter-{name}",
            ready=True,
            gpuspawner_gates=gates,
        )
    }
    return owner


def charge(accelerator: str) -> Charge:
    one = {Measure(What.GPUS, "nvidia.com/gpu"): 1}
    return Charge(frozenset({"ann"}), amounts=one, accelerator=accelerator)


def server_pod(name: str, seconds: float) -> ServerPod:
    """Make a pod whose image was pulled for an hour before it has run for so many seconds."""
    pulled, began = (
        datetime.fromtimestamp(NOW - it, UTC).isoformat() for it in (seconds + 3600, seconds)
    )
    metadata = {"namespace": "hub", "name": f"jupyter-{name}", "uid": f"{name} {began}"}
    return read({"metadata": metadata, "status": started(pulled, began)})


def known(stage: Stage) -> dict[Key, Watched]:
    every = ((key, stage.watch.find(key)) for key in stage.watch._servers)
    return {key: it for key, it in every if it is not None}


def stands(stage: Stage) -> dict[str, tuple[str, float | None]]:
    watch = stage.watch
    return {
        it.server[0]: (it.standing.state.value, watch.stops_in(it)) for it in known(stage).values()
    }


def may_stop(stage: Stage) -> bool:
    return stage.watch.may_stop(known(stage)[ANN])


async def stays(stage: Stage) -> dict[str, bool]:
    return {it.server[0]: it.stays async for it in stage.watch.standings()}


async def test_who_does_not_use_a_gpu_is_warned_and_others_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch)

    await stage.look(ann=0.0, bob=0.7)
    await stage.look(ann=0.0, bob=0.7)

    assert stage.noted == [("idle", "ann"), ("warned", "ann")]
    assert stands(stage) == {"ann": ("unused", 540), "bob": ("used", None)}
    assert [it["user"] for it in stage.told] == ["ann"]
    assert stage.told[0]["stops_in_seconds"] == 600


async def test_after_the_warning_the_server_may_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch)

    await stage.look_each_minute(10, ann=0.0)
    assert not may_stop(stage)
    await stage.look(ann=0.0)

    assert stands(stage)["ann"] == ("unused", 0)
    assert may_stop(stage)


async def test_a_server_is_stopped_only_by_a_look_that_began_after_the_warning_was_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may have computed since an earlier one read its use: Prometheus may be slow."""
    stage = Stage(monkeypatch)
    await stage.look_each_minute(10, ann=0.0)
    stage.source.meanwhile = lambda: stage.pass_by(30)

    await stage.look(59, ann=0.0)
    assert stands(stage)["ann"] == ("unused", 0)
    assert not may_stop(stage)
    await stage.look(ann=0.0)
    assert may_stop(stage)
    await stage.look(ann=0.5)
    assert not may_stop(stage)


async def test_a_server_is_stopped_also_if_each_look_takes_more_than_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Prometheus may need 20 s for each of many queries."""
    stage = Stage(monkeypatch)
    stage.source.used = {"ann": 0.0}
    stage.source.meanwhile = lambda: stage.pass_by(80)

    async def pass_by(seconds: float) -> None:
        stage.pass_by(seconds)
        if stage.now > 2000:
            raise asyncio.CancelledError

    monkeypatch.setattr(asyncio, "sleep", pass_by)
    with pytest.raises(asyncio.CancelledError):
        await stage.watch.run()

    assert stage.noted.count(("warned", "ann")) == 1
    assert may_stop(stage)


async def test_a_warning_ends_if_no_look_ends_for_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody could keep the server meanwhile, so its owner gets the whole time again."""
    stage = Stage(monkeypatch)
    await stage.look(ann=0.0)

    await stage.look(180, ann=0.0)
    assert stands(stage)["ann"] == ("unused", 600)
    assert stage.noted.count(("warned", "ann")) == 2

    await stage.look(179, ann=0.0)
    assert stands(stage)["ann"] == ("unused", 421)


async def test_what_an_owner_keeps_stays_kept_if_no_look_ends_for_minutes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch)
    await stage.look(ann=0.0)
    assert stage.watch.keep(ANN)

    await stage.look(1799, ann=0.0)
    assert stands(stage)["ann"] == ("unused", None)
    await stage.look(1, ann=0.0)
    assert stands(stage)["ann"] == ("unused", 600)
    assert not stage.watch.keep(ANN)


async def test_an_owner_keeps_the_server_as_often_as_the_policy_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch)
    await stage.look(ann=0.0, bob=0.5)

    assert stage.watch.keep(ANN)
    assert not stage.watch.keep(ANN)
    assert not stage.watch.keep(BOB)
    assert stands(stage)["ann"] == ("unused", None)

    await stage.look(1800, ann=0.0)
    assert stands(stage)["ann"] == ("unused", 600)
    assert not stage.watch.keep(ANN)
    assert [it for it, _ in stage.noted].count("kept") == 1


async def test_a_server_stays_for_as_long_as_its_owner_kept_it_also_if_the_hub_restarts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage, now = Stage(monkeypatch), time.time()
    kept = [fact("kept", now - 600, it, seconds=1800) for it in ("ann", "bob")]

    stage.watch.restore([*kept, fact("ended", now - 500, "bob")])
    await stage.look(60, ann=0.0, bob=0.0)
    assert stands(stage) == {"ann": ("unused", None), "bob": ("unused", 600)}

    await stage.look(1200, ann=0.0)
    assert stands(stage)["ann"] == ("unused", 600)


async def test_how_often_an_owner_has_kept_a_server_is_known_after_a_restart_until_it_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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


async def test_what_a_renamed_owner_has_kept_stays_kept_after_a_restart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The record has the name that the owner had when the server started, and so has its pod."""
    stage = Stage(monkeypatch)
    pod = stage.pods["hub", "jupyter-ann"]
    metadata = replace(pod.metadata, annotations=ServerAnnotations(user="before"))
    stage.pods["hub", "jupyter-ann"] = replace(pod, metadata=metadata)
    stage.watch.restore([fact("kept", time.time(), "before", seconds=7200)])

    await stage.look(ann=0.0)
    assert stands(stage)["ann"] == ("unused", None)
    stage.replace_pod("ann", 3600)
    await stage.look(ann=0.0)
    assert stands(stage)["ann"] == ("unused", 600)


async def test_what_an_owner_keeps_stays_kept_if_its_owner_is_renamed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch)
    await stage.look(ann=0.0)
    assert stage.watch.keep(ANN)

    watching.hub().users["ann"].name = "anna"
    assert stands(stage)["anna"] == ("unused", None)
    await stage.look(ann=0.0)
    assert stands(stage)["anna"] == ("unused", None)

    await stage.look(1800, ann=0.0)
    assert stands(stage)["anna"] == ("unused", 600)
    assert not stage.watch.keep(ANN)


async def test_what_its_owner_kept_before_the_hub_s_start_is_not_the_next_server_of_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch)
    stage.watch.restore([fact("kept", time.time(), "ann", seconds=7200)])
    await stage.look(60, ann=0.0)
    assert stands(stage)["ann"] == ("unused", None)

    stage.replace_pod("ann", 3600)
    await stage.look(3600, ann=0.0)
    assert stands(stage)["ann"] == ("unused", 600)


async def test_a_window_that_prometheus_never_answers_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stage = Stage(monkeypatch)
    stage.watch._source = OnlyShortWindows()
    for name, server in watching.hub().users.items():
        idle = RULE if name == "ann" else None
        server.spawners[""].gpuspawner_gates.server_state.granted = Granted("a100", idle=idle)
    stage.waiting = {"a100": 1}  # 20 minutes for ann, an hour for bob

    await stage.look()
    await stage.look()

    [line] = caplog.messages
    assert "use over the last 60 min isn't known: too many samples" in line


async def test_each_time_that_prometheus_goes_away_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stage = Stage(monkeypatch)
    for is_awaited, is_away in ((True, True), (False, False), (True, True)):
        stage.waiting = {"a100": 1} if is_awaited else {}
        stage.source.is_away = is_away
        await stage.look(ann=0.0)

    assert len(caplog.messages) == 2


class OnlyShortWindows(PlayedSource):
    """A Prometheus that has too many samples for an hour."""

    async def window(self, seconds: float) -> Window:
        if seconds >= 3600:
            raise UseUnknownError("too many samples")
        return await super().window(seconds)


async def test_while_prometheus_is_away_nobody_is_warned_or_stopped(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stage = Stage(monkeypatch)
    await stage.look(ann=0.0)
    stage.source.is_away = True

    with caplog.at_level(logging.WARNING, "gpuspawner"):
        await stage.look(600, ann=0.0)
        await stage.look(600, ann=0.0)

    assert stands(stage)["ann"] == ("unknown", None)
    assert len(caplog.records) == 1
    assert "gpu_use.prometheus" in caplog.text


async def test_a_server_has_to_stay_until_somebody_has_looked_and_while_its_owner_keeps_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch)
    assert await stays(stage) == {"ann": True, "bob": True}

    await stage.look(ann=0.0, bob=0.5)
    assert await stays(stage) == {"ann": False, "bob": False}

    stage.watch.keep(ANN)
    stage.source.is_away = True
    await stage.look(1200)
    assert await stays(stage) == {"ann": True, "bob": False}
    await stage.look(1800)
    assert await stays(stage) == {"ann": False, "bob": False}

    stage.replace_pod("bob", 60)
    assert await stays(stage) == {"ann": False, "bob": True}


async def test_the_use_of_a_profile_s_server_is_that_of_its_resource(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The line names it so, too: it isn't the profile that is idle."""
    stage = Stage(monkeypatch, rule=None)
    stage.charges["hub", "jupyter-ann"] = charge("gpu-large")

    await stage.look(ann=0.0, bob=0.0)
    await stage.look(ann=0.0, bob=0.0)

    assert stage.watch.idle_gpu_seconds == {"nvidia.com/gpu": 60, "a100": 60}


async def test_idle_gpus_add_up_by_the_accelerators_that_the_census_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The dashboard divides the one by the other."""
    stage = Stage(monkeypatch, rule=None)
    stage.charges["hub", "jupyter-ann"] = charge("gpu-large")
    on_t4 = {(("hub", "jupyter-ann"), "nvidia.com/gpu"): "t4"}
    stage.watch._counted_as = lambda *it: on_t4.get(it, it[1])

    await stage.look(ann=0.0, bob=0.0)
    await stage.look(ann=0.0, bob=0.0)

    assert stage.watch.idle_gpu_seconds == {"t4": 60, "a100": 60}


async def test_the_time_between_the_beginnings_of_two_looks_counts_as_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch)
    await stage.look(ann=0.0)
    stage.source.meanwhile = lambda: stage.pass_by(20)

    await stage.look(100, ann=0.0)
    await stage.look(30, ann=0.0)

    assert stage.watch.idle_gpu_seconds == {"a100": 150}


async def test_a_look_that_is_too_long_ago_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch)
    await stage.look(ann=0.0)

    stage.now += 181

    assert not known(stage)
    assert not stage.watch.keep(ANN)


async def test_what_a_look_says_is_as_old_as_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch)
    stage.source.meanwhile = lambda: stage.pass_by(100)
    await stage.look(ann=0.0)

    stage.now += 79
    assert stage.watch.find(ANN)
    stage.now += 1
    assert not stage.watch.find(ANN)


async def test_a_shorter_time_counts_while_others_wait_for_what_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch)
    await stage.look(ann=0.5)
    stage.waiting = {"a100": 1}

    await stage.look(ann=0.5)

    assert stage.source.asked == [3600, 1200]


async def test_without_a_policy_the_use_is_known_and_nobody_is_warned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch, rule=None)

    await stage.look(ann=0.0, bob=0.5)

    assert stands(stage) == {"ann": ("unused", None), "bob": ("used", None)}
    assert not stage.noted


async def test_the_pull_of_the_image_does_not_count_as_time_without_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The exporter names the pod from then on: its node has given it the GPU already."""
    stage = Stage(monkeypatch)
    stage.replace_pod("ann", seconds=3599)
    await stage.look(ann=0.0)
    assert stands(stage)["ann"] == ("unknown", None)

    stage.replace_pod("ann", seconds=3600)
    await stage.look(ann=0.0)
    assert stands(stage)["ann"] == ("unused", 600)


async def test_a_new_pod_of_the_same_name_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch)
    await stage.look(ann=0.0)
    stage.replace_pod("ann", seconds=3700)

    await stage.look(700, ann=0.0)

    assert stands(stage)["ann"] == ("unused", 600)


async def test_a_server_that_starts_again_has_no_warning_of_the_one_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also not until the next look: the culler may ask before it."""
    stage = Stage(monkeypatch)
    await stage.look_each_minute(11, ann=0.0)
    assert stands(stage)["ann"] == ("unused", 0)

    stage.replace_pod("ann", seconds=30)

    assert ANN not in known(stage)
    assert not stage.watch.keep(ANN)


async def test_nobody_is_warned_of_a_server_that_ended_while_prometheus_was_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch)
    stage.source.meanwhile = lambda: stage.replace_pod("ann", seconds=1)

    await stage.look(ann=0.0)

    assert not stage.noted
    assert list(known(stage)) == [BOB]


async def test_an_owner_gets_one_notice_though_prometheus_fails_every_other_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch)
    await stage.look(ann=0.0)

    for minute in range(58):
        stage.source.is_away = minute % 2 == 0
        await stage.look(ann=0.0)

    assert stage.noted.count(("warned", "ann")) > 1
    assert [it["user"] for it in stage.told] == ["ann"]

    stage.source.is_away = True
    await stage.look(3600 - 58 * 60)
    stage.source.is_away = False
    await stage.look(ann=0.0)
    assert [it["user"] for it in stage.told] == ["ann", "ann"]


async def test_an_owner_who_keeps_a_server_gets_a_notice_of_the_next_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch)
    await stage.look(ann=0.0)
    assert stage.watch.keep(ANN)

    await stage.look(1800, ann=0.0)

    assert [it["user"] for it in stage.told] == ["ann", "ann"]


async def test_the_line_counts_as_idle_who_does_not_use_a_gpu_and_else_who_is_inactive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch)
    keys = {it: ("hub", f"jupyter-{it}") for it in ("ann", "bob", "eve")}
    inactive = frozenset([keys["bob"], keys["eve"]])
    monkeypatch.setattr(watching, "unused_for", lambda _: inactive)

    await stage.look(ann=0.0, bob=0.7)

    assert stage.watch.unused_for(1800) == {keys["ann"], keys["eve"]}
    assert stage.watch.unused_for(7200) == {keys["eve"]}


async def test_where_gpus_were_not_looked_at_for_so_long_activity_says_who_is_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ann = ("hub", "jupyter-ann")
    stage = Stage(monkeypatch)
    stage.waiting = {"a100": 1}  # so that only 20 minutes are looked at
    monkeypatch.setattr(watching, "unused_for", lambda _: frozenset([ann]))

    await stage.look(ann=0.0, bob=0.0)
    assert stage.watch.unused_for(1800) == {ann}
    stage.source.is_away = True
    await stage.look()
    assert stage.watch.unused_for(1800) == {ann}


async def test_an_inactive_server_whose_gpu_was_used_meanwhile_is_not_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ann = ("hub", "jupyter-ann")
    stage = Stage(monkeypatch)
    stage.waiting = {"a100": 1}
    monkeypatch.setattr(watching, "unused_for", lambda _: frozenset([ann]))

    await stage.look(ann=0.9)
    await stage.look(seconds_later=1500, ann=0.0)
    assert stage.watch.unused_for(1800) == frozenset()
    await stage.look(seconds_later=300, ann=0.0)
    assert stage.watch.unused_for(1800) == {ann}


async def test_a_stopped_server_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch)
    await stage.look(ann=0.0)
    del stage.pods["hub", "jupyter-ann"]

    await stage.look()

    assert list(known(stage)) == [BOB]
    assert known(stage)[BOB].standing.state is UseState.UNKNOWN


async def test_the_time_of_unused_gpus_adds_up_by_accelerator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch, rule=None)

    await stage.look(ann=0.0, bob=0.5)
    await stage.look(60, ann=0.0, bob=0.0)
    await stage.look(600, ann=0.0, bob=0.0)  # nobody knows what was in these ten minutes
    await stage.look(30, ann=0.5)

    assert stage.watch.idle_gpu_seconds == {"a100": 120}
