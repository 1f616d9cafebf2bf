"""The view's health and its log under scripted faults; tests/cluster uses a real API server."""

import asyncio
import logging

import pytest
from aiohttp import web
from kubernetes_asyncio.client import Configuration

from gpuspawner.cluster.client import RequestError
from gpuspawner.cluster.health import Forbidden, Live, Reading, Stale, Unreachable
from gpuspawner.cluster.kinds import NODES, PODS, ObjectKind
from gpuspawner.cluster.view import ClusterView
from tests.unit.makers.scripted import FAST, after, event, failure, obj, page, telling, watch
from tests.unit.makers.views import AT_ONCE, CLAIMS, LIVE, NODE, POD, told, until, viewing
from tests.waiting import UNIT_PATIENCE as PATIENCE


async def test_the_view_is_reading_while_only_one_kind_is_listed() -> None:
    async with viewing(pods=[watch(hold=True)]) as (view, _):
        await until(view, lambda: view.state.known("Node"))

        assert not await view.first_list(0.05)
        assert isinstance(view.health(), Reading)


async def test_a_gap_makes_the_view_stale_until_the_new_list_is_complete() -> None:
    gone = watch(event("ERROR", {"code": 410, "message": "too old"}))
    async with viewing(pods=[page(POD), gone, page(POD, then="more"), watch(hold=True)]) as (v, _):
        await until(v, lambda: isinstance(v.health(), Stale))

        health = v.health()
        assert isinstance(health, Stale)
        assert "pods were missed" in health.why


async def test_the_view_is_stale_while_an_optional_kind_is_read_again(monkeypatch) -> None:
    """Verdicts would be unknown meanwhile, and servers would start unchecked."""
    claims = ObjectKind("PersistentVolumeClaim", "/api/v1/claims", required=False)
    gone = watch(event("ERROR", {"code": 410, "message": "too old"}))
    again = [page(then="more"), watch(hold=True)]
    async with viewing((NODES, PODS, claims), claims=[page(), gone, *again]) as (view, _):
        await until(view, lambda: isinstance(view.health(), Stale))
        assert "claims were missed" in str(view.health())

        monkeypatch.setattr("gpuspawner.cluster.health.REREAD_SECONDS", 0.0)
        assert isinstance(view.health(), Live)


async def test_the_view_is_forbidden_until_it_may_list_pods() -> None:
    pods = [failure(403, "pods is forbidden"), failure(403, "pods is forbidden"), page(POD)]
    async with viewing(pods=[*pods, watch(hold=True)]) as (view, _):
        await until(view, lambda: isinstance(view.health(), Forbidden))
        health = view.health()
        assert isinstance(health, Forbidden)
        assert health.kinds == ("pods",)
        assert "pods is forbidden" in health.text

        await until(view, lambda: isinstance(view.health(), Live))
        assert list(view.state.pods) == ["jhub/a"]


async def test_a_live_view_stays_so_while_a_starting_api_server_forbids_everything() -> None:
    pods = [page(POD), failure(403, "pods is forbidden"), watch(hold=True)]
    async with viewing(pods=pods) as (view, server):
        seen = []
        while len(server.queries) < 4:
            await view.changed(PATIENCE)
            seen.append(view.health())

        assert any(isinstance(it, Live) for it in seen)
        assert not any(isinstance(it, Forbidden) for it in seen)


async def test_no_contact_is_lost_if_the_hub_may_not_read_something() -> None:
    async with viewing(nodes=[failure(403)] * 1000) as (view, _):
        await until(view, lambda: isinstance(view.health(), Forbidden))

        assert not view.in_touch()
        assert not view.lost_contact()


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


async def test_contact_lost_for_long_makes_the_view_stale(monkeypatch) -> None:
    monkeypatch.setattr("gpuspawner.cluster.health.STALE_AFTER", 0.2)
    async with viewing(nodes=[page(), failure(500, "etcd is gone")]) as (view, _):

        def is_stale_by_age() -> bool:
            health = view.health()
            return isinstance(health, Stale) and health.age > 0.2 and "HTTP 5" in health.why

        await until(view, is_stale_by_age)


async def test_a_silent_api_server_makes_the_view_stale_and_is_logged(monkeypatch, caplog) -> None:
    monkeypatch.setattr("gpuspawner.cluster.health.STALE_AFTER", 0.1 - FAST.silence)
    monkeypatch.setattr("gpuspawner.cluster.view._LOOK_AT_HEALTH_EVERY", 0.05)
    async with viewing() as (view, _):
        await until(view, lambda: any("fallen silent" in r.message for r in caplog.records))


async def test_only_its_own_watch_ends_the_silence_about_a_kind() -> None:
    said = asyncio.Event()
    pods = [page(), after(said, watch(event("ADDED", POD), hold=True))]
    async with viewing(pods=pods) as (view, _):
        assert await view.first_list(PATIENCE)
        await until(view, lambda: min(map(view.silent_for, ("Node", "Pod"))) > 0.2)
        before = view.silent_for("Node") - view.silent_for("Pod")
        said.set()
        await until(view, lambda: view.silent_for("Node") - view.silent_for("Pod") > before + 0.1)

        assert isinstance(view.health(), Live)


async def test_contact_is_back_only_when_all_missed_changes_have_arrived() -> None:
    """The server answers a new watch before it sends the changes since the last one."""
    other, sent = obj("b", namespace="jhub", spec={"nodeName": "n1"}), asyncio.Event()

    async def next_watch(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(event("DELETED", other))
        await sent.wait()
        await response.write(event("DELETED", POD) + event("BOOKMARK", obj("", "9")))
        await asyncio.Event().wait()
        return response

    async with viewing(pods=[page(POD, other), failure(500), next_watch]) as (view, server):
        assert await view.first_list(PATIENCE)
        await until(view, lambda: list(view.state.pods) == ["jhub/a"])
        assert not view.in_touch()
        assert view.lost_contact()
        sent.set()
        await until(view, view.in_touch)

        assert not view.lost_contact()
        assert not view.state.pods
        assert isinstance(view.health(), Live)
        watches = [query for query in server.queries if "watch" in query]
        # The watch is short, in case no bookmark comes.
        assert "3" in {query["timeoutSeconds"] for query in watches}


async def test_contact_is_back_when_a_watch_ends_in_order_without_a_bookmark() -> None:
    pods = [page(POD), failure(500), watch(event("DELETED", POD)), watch(hold=True)]
    async with viewing(pods=pods) as (view, _):
        await until(view, lambda: not view.state.pods)

        await until(view, view.in_touch)


@pytest.mark.parametrize("status", [403, 404, 503])
async def test_a_kind_that_can_be_done_without_loses_no_contact(status) -> None:
    """A hub may never be allowed to read it, and nobody should wait at each start for that."""
    classes = ObjectKind("PriorityClass", "/api/v1/classes", required=False)
    async with viewing((NODES, PODS, classes), classes=[failure(status)] * 1000) as (view, server):
        await until(view, lambda: view.state.known("Node") and view.state.known("Pod"))
        await until(view, lambda: len(server.scripts["classes"]) < 999)

        assert view.in_touch()


async def test_each_change_of_health_is_logged_once(caplog) -> None:
    caplog.set_level(logging.INFO, "gpuspawner")
    async with viewing(pods=[*[failure(403, "no")] * 5, page(), watch(hold=True)]) as (view, _):
        await until(view, lambda: isinstance(view.health(), Live))

    said = [record.message for record in caplog.records]
    assert sum("isn't allowed to list and watch pods" in line for line in said) == 1
    assert sum("is live" in line for line in said) == 1
    assert all("\n" not in line for line in said)


async def test_forbidden_optional_kinds_are_logged_once_in_one_line(caplog) -> None:
    kinds = tuple(ObjectKind(name, f"/api/v1/{name}", required=False) for name in ("as", "bs"))
    refused = {name: [failure(403)] * 1000 for name in ("as", "bs")}
    async with viewing((NODES, PODS, *kinds), **refused) as (view, _):
        assert await view.first_list(PATIENCE)

    [line] = [r.message for r in caplog.records if "isn't allowed to list" in r.message]
    assert "isn't allowed to list and watch as, bs;" in line


STATUS = ObjectKind("ConfigMap", "/api/v1/configmaps", "metadata.name=status", required=False)


@pytest.fixture
def at_last(monkeypatch, caplog) -> None:
    """What was forbidden long enough for its new list to keep nobody waiting."""
    caplog.set_level(logging.INFO, "gpuspawner")
    monkeypatch.setattr("gpuspawner.cluster.health.REREAD_SECONDS", 0.0)


@pytest.mark.usefixtures("at_last")
async def test_a_right_that_is_lost_is_logged_once_and_once_more_when_it_is_back(caplog) -> None:
    read, back = asyncio.Event(), asyncio.Event()
    lost = [after(read, failure(403)), *[failure(403)] * 3]
    claims = [page(), *lost, after(back, page()), watch(hold=True)]
    async with viewing((NODES, PODS, CLAIMS), AT_ONCE, claims=claims) as (view, _):
        await until(view, lambda: told(caplog) == [LIVE])
        read.set()
        await until(view, lambda: "isn't allowed" in caplog.text)
        back.set()
        await until(view, lambda: "may now" in caplog.text)

    live, loss, return_ = told(caplog)
    assert live == LIVE
    assert loss.startswith(
        "The hub isn't allowed to list and watch claims; it starts servers whose"
    )
    assert return_ == "The hub may now list and watch claims."


@pytest.mark.usefixtures("at_last")
async def test_so_is_one_that_tells_of_nodes_to_come(caplog) -> None:
    back = asyncio.Event()
    configmaps = [page(), *[failure(403)] * 4, after(back, page()), watch(hold=True)]
    scripts = {"configmaps": configmaps}
    async with viewing(backoff=AT_ONCE, scaling_kinds=(STATUS,), **scripts) as (view, _):
        await until(view, lambda: "isn't allowed" in caplog.text)
        back.set()
        await until(view, lambda: "may now" in caplog.text)

    _, loss, return_ = told(caplog)
    name = "configmaps (metadata.name=status)"
    assert loss.startswith(f"The hub isn't allowed to list and watch {name}; what depends on them")
    assert return_ == f"The hub may now list and watch {name}."


async def test_a_right_that_tells_of_nodes_to_come_and_never_was_there_is_not_called_lost(
    caplog,
) -> None:
    scripts = {"configmaps": [failure(403)] * 1000}
    async with viewing(backoff=AT_ONCE, scaling_kinds=(STATUS,), **scripts) as (view, server):
        assert await view.first_list(PATIENCE)
        await until(view, lambda: len(server.scripts["configmaps"]) < 999)

    assert not any("isn't allowed" in line for line in told(caplog))


async def test_a_right_that_stays_away_is_not_told_again_after_an_outage(caplog) -> None:
    caplog.set_level(logging.INFO, "gpuspawner")
    seen = asyncio.Event()
    gone = after(seen, watch(event("ERROR", {"code": 410, "message": "too old"})))
    pods = [page(POD), gone, page(POD, then="more"), failure(500), page(POD), watch(hold=True)]
    forbidden = {"claims": [failure(403)] * 1000}
    async with viewing((NODES, PODS, CLAIMS), AT_ONCE, pods=pods, **forbidden) as (view, server):
        await until(view, lambda: "isn't allowed" in caplog.text)
        seen.set()
        await until(view, lambda: told(caplog).count(LIVE) == 2)
        left = len(server.scripts["claims"])
        await until(view, lambda: len(server.scripts["claims"]) < left - 1)

    assert sum("isn't allowed" in line for line in told(caplog)) == 1


@pytest.mark.usefixtures("at_last")
async def test_who_loses_all_rights_and_gets_them_back_reads_of_both_once(caplog) -> None:
    """What was forbidden while the view wasn't live says nothing of the rights after that."""
    read, lost, asked, back = (asyncio.Event() for _ in range(4))
    again = telling(asked, after(back, page()))
    scripts = {
        "nodes": [
            page(NODE),
            after(read, failure(403)),
            telling(lost, failure(403)),
            page(NODE),
            watch(hold=True),
        ],
        "pods": [
            page(POD),
            *[after(read, failure(403))] * 3,
            after(asked, page(POD)),
            watch(hold=True),
        ],
        "claims": [page(), *[after(lost, failure(403))] * 2, again, watch(hold=True)],
    }
    async with viewing((NODES, PODS, CLAIMS), AT_ONCE, **scripts) as (view, _):
        await until(view, lambda: told(caplog) == [LIVE])
        read.set()
        await until(view, lambda: told(caplog).count(LIVE) == 2)
        back.set()
        await until(view, lambda: view.state.known("PersistentVolumeClaim"))

    losses = [line.partition(" (")[0] for line in told(caplog) if "isn't allowed" in line]
    assert not any("claims" in loss for loss in losses)
    assert len(losses) == len(set(losses)) > 0
    assert told(caplog)[-1] == LIVE


async def test_starts_do_not_wait_for_what_the_hub_may_not_read_any_more(caplog) -> None:
    scripts = {"claims": [page(), *[failure(403)] * 1000]}
    async with viewing((NODES, PODS, CLAIMS), AT_ONCE, **scripts) as (view, _):
        await until(view, lambda: "isn't allowed" in caplog.text)

        assert isinstance(view.health(), Live)
    assert not any("read again" in line for line in told(caplog))
