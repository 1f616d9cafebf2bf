"""Health and state under scripted faults; tests/cluster holds the view against a real server."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from kubernetes_asyncio.client import Configuration

from gpuspawner.cluster.client import RequestError
from gpuspawner.cluster.health import Forbidden, Live, Reading, Stale, Unreachable
from gpuspawner.cluster.kinds import NODES, PODS, Kind
from gpuspawner.cluster.view import ClusterView
from gpuspawner.kube.objects import KubeObject, Undecodable
from tests.unit.cluster.scripted import (
    FAST,
    ScriptedServer,
    Step,
    event,
    failure,
    obj,
    page,
    raw,
    watch,
)
from tests.waiting import PATIENCE

NODE = obj("n1", status={"allocatable": {"nvidia.com/gpu": "1", "pods": "110"}})
POD = obj("a", namespace="jhub", spec={"nodeName": "n1"})


@asynccontextmanager
async def viewing(
    kinds: tuple[Kind, ...] = (NODES, PODS), **scripts: list[Step]
) -> AsyncIterator[tuple[ClusterView, ScriptedServer]]:
    """A started view of a scripted server; what is not scripted is an empty list, then silence."""
    for plural in ("nodes", "pods"):
        scripts.setdefault(plural, [page(), watch(hold=True)])
    server = ScriptedServer(**scripts)
    async with server.serving():
        view = ClusterView(server.configuration, kinds, FAST)
        view.start()
        try:
            yield view, server
        finally:
            await view.stop()


async def until(view: ClusterView, true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not true():
            await view.changed(0.05)


async def test_once_both_kinds_are_listed_the_view_is_live() -> None:
    nodes, pods = [page(NODE), watch(hold=True)], [page(POD), watch(hold=True)]
    async with viewing(nodes=nodes, pods=pods) as (view, _):
        assert isinstance(view.health(), Reading)
        assert await view.first_list(PATIENCE)

        health = view.health()
        assert isinstance(health, Live)
        assert health.age < 1
        assert list(view.state.nodes) == ["n1"]
        assert list(view.state.pods) == ["jhub/a"]
        assert view.state.known("Node")
        assert view.state.known("Pod")


async def test_only_one_kind_listed_is_still_reading() -> None:
    async with viewing(pods=[watch(hold=True)]) as (view, _):
        await until(view, lambda: view.state.known("Node"))

        assert not await view.first_list(0.05)
        assert isinstance(view.health(), Reading)


async def test_what_vanished_during_a_gap_is_gone_after_the_new_list() -> None:
    gone = watch(event("ERROR", {"code": 410, "message": "too old"}))
    stays, comes = obj("stays", namespace="jhub"), obj("comes", namespace="jhub")
    pods = [page(POD, stays), gone, page(stays, comes), watch(hold=True)]
    async with viewing(pods=pods) as (view, _):
        await until(view, lambda: "jhub/comes" in view.state.unbound_pods)
        await until(view, lambda: isinstance(view.health(), Live))

        assert list(view.state.unbound_pods) == ["jhub/stays", "jhub/comes"]
        assert not view.state.pods


async def test_until_the_new_list_is_whole_a_gap_makes_the_view_stale() -> None:
    gone = watch(event("ERROR", {"code": 410, "message": "too old"}))
    async with viewing(pods=[page(POD), gone, page(POD, then="more"), watch(hold=True)]) as (v, _):
        await until(v, lambda: isinstance(v.health(), Stale))

        health = v.health()
        assert isinstance(health, Stale)
        assert "pods were missed" in health.why


async def test_watched_changes_reach_the_state_and_wake_those_who_wait() -> None:
    later = asyncio.Event()
    added = event("ADDED", {**POD, "metadata": {**POD["metadata"], "resourceVersion": "2"}})  # type: ignore[dict-item]

    async def step(request: object) -> object:
        await later.wait()
        return await watch(added, event("DELETED", POD), hold=True)(request)  # type: ignore[arg-type]

    async with viewing(pods=[page(), step]) as (view, _):  # type: ignore[list-item]
        assert await view.first_list(PATIENCE)
        waiting = asyncio.create_task(view.changed(3))
        await asyncio.sleep(0)
        version = view.state.version
        later.set()

        assert await waiting
        await until(view, lambda: view.state.version > version and not view.state.pods)


async def test_waiting_for_a_change_ends_in_time() -> None:
    async with viewing() as (view, _):
        assert await view.first_list(PATIENCE)

        async with asyncio.timeout(PATIENCE):
            while await view.changed(0.1):
                pass


async def test_without_the_right_to_list_pods_the_view_is_forbidden_and_recovers() -> None:
    pods = [failure(403, "pods is forbidden"), failure(403, "pods is forbidden"), page(POD)]
    async with viewing(pods=[*pods, watch(hold=True)]) as (view, _):
        await until(view, lambda: isinstance(view.health(), Forbidden))
        health = view.health()
        assert isinstance(health, Forbidden)
        assert health.kinds == ("pods",)
        assert "pods is forbidden" in health.text

        await until(view, lambda: isinstance(view.health(), Live))
        assert list(view.state.pods) == ["jhub/a"]


async def test_nobody_waits_for_a_list_that_is_forbidden() -> None:
    async with viewing(pods=[failure(403)] * 1000) as (view, _):
        async with asyncio.timeout(60):
            assert not await view.first_list(3600)


async def test_without_configuration_the_view_is_unreachable_and_says_why() -> None:
    async def none() -> Configuration:
        raise RequestError("no usable Kubernetes configuration: no file")

    view = ClusterView(none, backoff=FAST)
    view.start()
    assert not await view.first_list(PATIENCE)
    health = view.health()
    await view.stop()

    assert health == Unreachable("no usable Kubernetes configuration: no file")


async def test_a_view_that_was_not_started_is_unreachable() -> None:
    assert ClusterView().health() == Unreachable("the view is not running")


async def test_expired_credentials_are_loaded_anew() -> None:
    async with viewing(nodes=[failure(401), page(NODE), watch(hold=True)]) as (view, server):
        await until(view, lambda: isinstance(view.health(), Live))

        assert server.loads == 3


async def test_contact_lost_for_long_makes_the_view_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuspawner.cluster.health.STALE_AFTER", 0.2)
    async with viewing(nodes=[page(), failure(500, "etcd is gone")]) as (view, _):

        def is_stale_by_age() -> bool:
            health = view.health()
            return isinstance(health, Stale) and health.age > 0.2 and "HTTP 5" in health.why

        await until(view, is_stale_by_age)


async def test_a_silent_api_server_makes_the_view_stale_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gpuspawner.cluster.health.STALE_AFTER", -0.8)
    monkeypatch.setattr("gpuspawner.cluster.view._LOOK_AT_HEALTH_EVERY", 0.05)
    async with viewing() as (view, _):
        await until(view, lambda: any("fallen silent" in r.message for r in caplog.records))


async def test_a_short_loss_of_contact_leaves_it_live() -> None:
    nodes = [page(NODE), failure(500), watch(event("DELETED", NODE), hold=True)]
    async with viewing(nodes=nodes) as (view, _):
        assert await view.first_list(PATIENCE)
        await until(view, lambda: not view.state.nodes)

        assert isinstance(view.health(), Live)


async def test_contact_is_back_only_when_nothing_that_was_missed_is_still_on_its_way() -> None:
    """A new watch is answered before it tells what happened while there was none."""
    answered, told = asyncio.Event(), asyncio.Event()

    async def taken_up(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        answered.set()
        await told.wait()
        await response.write(event("DELETED", POD) + event("BOOKMARK", obj("", "9")))
        await asyncio.Event().wait()
        return response

    async with viewing(pods=[page(POD), failure(500), taken_up]) as (view, server):
        await answered.wait()
        await view.changed(0.2)
        assert not view.in_touch()
        told.set()
        await until(view, view.in_touch)

        assert not view.state.pods
        assert isinstance(view.health(), Live)
        watches = [query for query in server.queries if "watch" in query]
        assert "3" in {query["timeoutSeconds"] for query in watches}  # no minute without bookmarks


async def test_contact_is_back_when_a_watch_has_ended_in_order_without_a_bookmark() -> None:
    pods = [page(POD), failure(500), watch(event("DELETED", POD)), watch(hold=True)]
    async with viewing(pods=pods) as (view, _):
        await until(view, lambda: not view.state.pods)

        await until(view, view.in_touch)


async def test_each_change_of_health_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "gpuspawner")
    async with viewing(pods=[*[failure(403, "no")] * 5, page(), watch(hold=True)]) as (view, _):
        await until(view, lambda: isinstance(view.health(), Live))

    said = [record.message for record in caplog.records]
    assert sum("may not list and watch pods" in line for line in said) == 1
    assert sum("is live" in line for line in said) == 1
    assert all("\n" not in line for line in said)


async def test_an_odd_object_neither_stops_the_view_nor_hides_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    odd = [obj("odd", namespace="x", spec={"nodeName": 7}), obj("odder", namespace="x", spec=[])]
    async with viewing(pods=[page(*odd, POD), watch(hold=True)]) as (view, _):
        assert await view.first_list(PATIENCE)

        assert list(view.state.pods) == ["jhub/a"]
        assert len(list(view.state.undecodable)) == 2
    assert sum("cannot be understood" in record.message for record in caplog.records) == 1


async def test_an_error_of_our_own_is_logged_and_the_view_goes_on(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with viewing(pods=[raw(b'{"metadata":{"resourceVersion":"1"}}'), page(POD)]) as (view, _):
        broken = {"left": 1}
        mark_known = view.state.mark_known

        def fail_once(kind: str) -> None:
            if kind == "Pod" and broken["left"]:
                broken["left"] = 0
                raise KeyError(kind)
            mark_known(kind)

        monkeypatch.setattr(view.state, "mark_known", fail_once)
        await until(view, lambda: bool(view.state.pods))

    assert any("begins anew" in record.message for record in caplog.records)


async def test_after_an_error_of_our_own_an_optional_kind_is_unknown_until_it_is_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    claims = Kind("PersistentVolumeClaim", "claims", "/api/v1/claims", required=False)
    first, second = obj("first", namespace="jhub"), obj("second", namespace="jhub")
    script = [page(first), watch(event("ADDED", second)), *[page(first, second)] * 1000]
    async with viewing((NODES, PODS, claims), claims=script) as (view, _):
        put = view.state.put

        def fail_on_second(thing: KubeObject | Undecodable) -> None:
            if "second" in str(thing):
                raise KeyError(thing)
            put(thing)

        monkeypatch.setattr(view.state, "put", fail_on_second)
        await until(view, lambda: view.state.known("PersistentVolumeClaim"))
        await until(view, lambda: not view.state.known("PersistentVolumeClaim"))


async def test_an_optional_kind_that_is_forbidden_changes_nothing_else() -> None:
    claims = Kind("PersistentVolumeClaim", "claims", "/api/v1/claims", required=False)
    async with viewing((NODES, PODS, claims), claims=[failure(403)] * 1000) as (view, _):
        assert await view.first_list(PATIENCE)

        assert isinstance(view.health(), Live)
        assert not view.state.known("PersistentVolumeClaim")


async def test_a_kind_that_the_server_does_not_have_has_no_objects() -> None:
    classes = Kind("DeviceClass", "classes", "/api/v1/classes", required=False)
    async with viewing((NODES, PODS, classes), classes=[failure(404)] * 1000) as (view, _):
        assert await view.first_list(PATIENCE)

        assert view.state.known("DeviceClass")


async def test_a_second_start_does_nothing_and_stop_leaves_no_task() -> None:
    before = asyncio.all_tasks()
    async with viewing() as (view, server):
        view.start()
        assert await view.first_list(PATIENCE)
        assert len([query for query in server.queries if "limit" in query]) == 2

    view_tasks = {task for task in asyncio.all_tasks() - before if "view" in repr(task)}
    assert not view_tasks


async def test_the_first_list_is_over_once_optional_kinds_are_read_too() -> None:
    later = asyncio.Event()

    async def step(request: object) -> object:
        await later.wait()
        return await page(obj("claim", namespace="jhub"))(request)  # type: ignore[arg-type]

    claims = Kind("PersistentVolumeClaim", "claims", "/api/v1/claims", required=False)
    async with viewing((NODES, PODS, claims), claims=[step, watch(hold=True)]) as (view, _):  # type: ignore[list-item]
        waiting = asyncio.create_task(view.first_list(PATIENCE))
        await until(view, lambda: isinstance(view.health(), Live))
        assert not waiting.done()
        later.set()

        assert await waiting
        assert view.state.known("PersistentVolumeClaim")


async def test_which_optional_kinds_are_forbidden_is_said_once_in_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kinds = tuple(Kind(name, name, f"/api/v1/{name}", required=False) for name in ("as", "bs"))
    refused = {name: [failure(403)] * 1000 for name in ("as", "bs")}
    async with viewing((NODES, PODS, *kinds), **refused) as (view, _):
        assert await view.first_list(PATIENCE)

    [line] = [r.message for r in caplog.records if "may not list" in r.message]
    assert "may not list and watch as, bs;" in line


async def test_an_optional_kind_is_unknown_while_its_changes_may_have_been_missed() -> None:
    claims = Kind("PersistentVolumeClaim", "claims", "/api/v1/claims", required=False)
    script = [page(obj("claim", namespace="jhub")), failure(410), *[failure(500)] * 1000]
    async with viewing((NODES, PODS, claims), claims=script) as (view, _):
        assert await view.first_list(PATIENCE)
        await until(view, lambda: not view.state.known("PersistentVolumeClaim"))

        assert isinstance(view.health(), Live)
