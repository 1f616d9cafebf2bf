"""The view if what only some verdicts need can't be read for long, under scripted faults."""

import asyncio
import logging

import pytest
from aiohttp import web
from msgspec.structs import replace

from gpuspawner.cluster.health import Live, Stale
from gpuspawner.cluster.kinds import KARPENTER_KINDS, NODES, PODS, ObjectKind
from tests.unit.makers.scripted import (
    FAST,
    after,
    broken,
    event,
    failure,
    obj,
    page,
    preferring,
    watch,
)
from tests.unit.makers.views import AT_ONCE, CLAIMS, LIVE, NODE, POD, told, until, viewing
from tests.waiting import UNIT_PATIENCE as PATIENCE


@pytest.fixture
def soon(monkeypatch, caplog) -> None:
    """What fails for a fifth of a second has failed for long."""
    caplog.set_level(logging.INFO, "gpuspawner")
    monkeypatch.setattr("gpuspawner.cluster.health.STALE_AFTER", 0.2)
    monkeypatch.setattr("gpuspawner.cluster.view._LOOK_AT_HEALTH_EVERY", 0.05)


@pytest.fixture
def unawaited(monkeypatch) -> None:
    """No start waits for what is read again."""
    monkeypatch.setattr("gpuspawner.cluster.health.REREAD_SECONDS", 0.0)


@pytest.mark.usefixtures("soon")
async def test_an_optional_kind_whose_watch_fails_for_long_is_unknown_in_a_live_view(
    caplog,
) -> None:
    claim = obj("home", namespace="jhub")
    scripts = {"claims": [page(claim), *[failure(503)] * 1000]}
    async with viewing((NODES, PODS, CLAIMS), **scripts) as (view, _):
        await until(view, lambda: view.state.known("PersistentVolumeClaim"))
        await until(view, lambda: not view.state.known("PersistentVolumeClaim"))

        assert isinstance(view.health(), Live)
        await until(view, lambda: "can't read" in caplog.text)

    [line] = [it for it in told(caplog) if "can't read" in it]
    assert line.startswith("The hub can't read claims (HTTP 503")
    assert "without checking for room until it can." in line


@pytest.mark.usefixtures("soon")
async def test_starts_wait_for_an_optional_kind_that_catches_up(caplog) -> None:
    resumed, sent = asyncio.Event(), asyncio.Event()

    async def catches_up(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        resumed.set()
        await sent.wait()
        await response.write(event("BOOKMARK", obj("", "9")))
        await asyncio.Event().wait()
        return response

    back = asyncio.Event()
    claims = [page(), *[failure(503)] * 3, after(back, failure(503)), catches_up]
    async with viewing((NODES, PODS, CLAIMS), claims=claims) as (view, _):
        await until(view, lambda: view.state.known("PersistentVolumeClaim"))
        await until(view, lambda: "can't read claims" in caplog.text)
        back.set()
        await until(view, resumed.is_set)
        await until(view, lambda: isinstance(view.health(), Stale))
        assert not view.state.known("PersistentVolumeClaim")
        sent.set()
        await until(view, lambda: view.state.known("PersistentVolumeClaim"))

        assert isinstance(view.health(), Live)
        await until(view, lambda: "The hub reads claims again." in told(caplog))


@pytest.mark.usefixtures("soon")
async def test_no_start_waits_on_and_on_for_a_kind_whose_watches_break_again_and_again(
    monkeypatch, caplog
) -> None:
    monkeypatch.setattr("gpuspawner.cluster.health.REREAD_SECONDS", 0.0)
    monkeypatch.setattr("gpuspawner.cluster.health.STALE_IF_BEHIND", 0.2)
    async with viewing((NODES, PODS, CLAIMS), claims=[page(), *[broken()] * 1000]) as (
        view,
        server,
    ):
        await until(view, lambda: "can't read claims" in caplog.text)
        left, seen = len(server.scripts["claims"]), []
        view.listen(lambda: seen.append(view.health()))
        await until(view, lambda: len(server.scripts["claims"]) < left - 10)

        assert not view.state.known("PersistentVolumeClaim")
        assert seen
        assert not any(isinstance(it, Stale) for it in seen)
    assert told(caplog)[0] == LIVE
    assert len(told(caplog)) == 2


@pytest.mark.usefixtures("soon")
async def test_after_an_outage_starts_wait_for_optional_kinds_too_but_not_for_long(
    monkeypatch,
) -> None:
    monkeypatch.setattr("gpuspawner.cluster.health.REREAD_SECONDS", PATIENCE)
    back, caught_up = asyncio.Event(), watch(event("BOOKMARK", obj("", "9")), hold=True)
    outage = [failure(503)] * 60
    scripts = {
        "nodes": [page(NODE), *outage, caught_up],
        "pods": [page(POD), *outage, caught_up],
        "claims": [page(), *outage, after(back, caught_up)],
    }
    async with viewing((NODES, PODS, CLAIMS), **scripts) as (view, _):
        await until(view, lambda: view.state.known("PersistentVolumeClaim"))
        await until(view, lambda: not view.state.known("PersistentVolumeClaim"))
        await until(view, view.in_touch)

        assert "claims were missed" in str(view.health())
        with monkeypatch.context() as later:
            later.setattr("gpuspawner.cluster.health.REREAD_SECONDS", 0.0)
            assert isinstance(view.health(), Live)
        back.set()
        await until(view, lambda: isinstance(view.health(), Live))
        assert view.state.known("PersistentVolumeClaim")


@pytest.mark.usefixtures("soon", "unawaited")
async def test_a_right_that_is_withdrawn_is_told_once_and_not_as_if_it_could_be_read_again(
    caplog,
) -> None:
    scripts = {"claims": [page(), *[failure(403)] * 1000]}
    backoff = replace(FAST, doubt=0.6)
    async with viewing((NODES, PODS, CLAIMS), backoff, **scripts) as (view, _):
        await until(view, lambda: "isn't allowed" in caplog.text)

    live, loss = told(caplog)
    assert (live, "isn't allowed to list and watch claims" in loss) == (LIVE, True)


@pytest.mark.usefixtures("soon", "unawaited")
async def test_a_right_that_is_withdrawn_from_what_failed_is_not_told_as_if_it_could_be_read(
    caplog,
) -> None:
    lost, back = asyncio.Event(), asyncio.Event()
    forbidden = [after(lost, failure(403)), *[failure(403)] * 3]
    claims = [page(), *[failure(503)] * 25, *forbidden, after(back, page()), watch(hold=True)]
    async with viewing((NODES, PODS, CLAIMS), AT_ONCE, claims=claims) as (view, _):
        await until(view, lambda: "can't read claims" in caplog.text)
        lost.set()
        await until(view, lambda: "isn't allowed" in caplog.text)
        back.set()
        await until(view, lambda: "may now" in caplog.text)

    assert not any("reads claims again" in line for line in told(caplog))


@pytest.mark.usefixtures("soon", "unawaited")
async def test_a_kind_whose_list_breaks_again_and_again_is_told_once(caplog) -> None:
    half = [page(then="more"), failure(500)]
    gone = watch(event("ERROR", {"code": 410, "message": "too old"}))
    back = asyncio.Event()
    claims = [page(), gone, *half * 60, after(back, page()), watch(hold=True)]
    async with viewing((NODES, PODS, CLAIMS), claims=claims) as (view, server):
        await until(view, lambda: len(server.scripts["claims"]) <= 2)
        assert "can't read claims" in caplog.text
        back.set()
        await until(view, lambda: "reads claims again" in caplog.text)

    assert sum("can't read claims" in line for line in told(caplog)) == 1
    assert sum("reads claims again" in line for line in told(caplog)) == 1


@pytest.mark.usefixtures("soon")
async def test_history_that_an_outage_has_cost_is_not_told_as_if_nothing_could_be_read(
    caplog,
) -> None:
    stale, listed, back = (asyncio.Event() for _ in range(3))
    lost = failure(503)
    gone = watch(event("ERROR", {"code": 410, "message": "too old"}))
    nodes = [page(NODE), lost, after(listed, gone), page(NODE), watch(hold=True)]
    claims = [page(), lost, after(stale, gone), after(back, page()), watch(hold=True)]
    async with viewing(scaling_kinds=(CLAIMS,), nodes=nodes, claims=claims) as (view, server):
        await until(view, lambda: isinstance(view.health(), Stale))
        stale.set()
        await until(view, lambda: len(server.scripts["claims"]) == 1)
        listed.set()
        await until(view, lambda: told(caplog).count(LIVE) == 2)
        back.set()
        await until(view, lambda: not server.scripts["claims"])

    assert "can't read claims" not in caplog.text


@pytest.mark.usefixtures("soon")
async def test_an_api_that_the_server_lacks_does_not_become_unknown_by_time() -> None:
    classes = ObjectKind("DeviceClass", "/apis/resource.k8s.io/v1/classes", required=False)
    scripts = {"classes": [failure(404), *[failure(503)] * 1000]}
    async with viewing((NODES, PODS, classes), **scripts) as (view, server):
        await until(view, lambda: view.state.known("DeviceClass"))
        left = len(server.scripts["classes"])
        await until(view, lambda: len(server.scripts["classes"]) < left - 15)

        assert view.state.known("DeviceClass")
        assert isinstance(view.health(), Live)


@pytest.mark.usefixtures("soon", "unawaited")
async def test_a_program_that_is_removed_is_not_told_as_one_that_cannot_be_read(caplog) -> None:
    gone = {it: [page(), *[failure(404)] * 1000] for it in ("nodepools", "nodeclaims")}
    scripts = {"karpenter.sh": [preferring("v1"), *[failure(404)] * 1000], **gone}
    async with viewing(scaling_kinds=KARPENTER_KINDS, **scripts) as (view, server):
        await until(view, lambda: told(caplog) == [LIVE])
        await until(view, lambda: len(server.scripts["nodepools"]) < 960)

    assert told(caplog) == [LIVE]
