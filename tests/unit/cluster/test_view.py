"""The view's state, and waiting for it, under scripted faults; tests/cluster has a real server."""

import asyncio
from functools import partial

import pytest

from gpuspawner.cluster.client import RequestError
from gpuspawner.cluster.health import Live, Reading, Unreachable
from gpuspawner.cluster.kinds import KINDS, NODES, PODS, ObjectKind, status_at
from gpuspawner.cluster.view import server_version
from gpuspawner.kube.objects import KubeObject, Undecodable
from gpuspawner.scheduling import Rules
from tests.unit.makers.scripted import (
    FAST,
    ScriptedServer,
    after,
    event,
    failure,
    obj,
    page,
    raw,
    watch,
)
from tests.unit.makers.views import AT_ONCE, CLAIMS, NODE, POD, until, viewing
from tests.waiting import UNIT_PATIENCE as PATIENCE

CLASSES = ObjectKind("DeviceClass", "/apis/resource.k8s.io/v1/deviceclasses", required=False)


async def test_the_view_is_live_once_both_kinds_are_listed() -> None:
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


async def test_watched_changes_reach_the_state_and_wake_waiting_tasks() -> None:
    later = asyncio.Event()
    changes = after(later, watch(event("ADDED", POD), event("DELETED", POD), hold=True))
    async with viewing(pods=[page(), changes]) as (view, _):
        assert await view.first_list(PATIENCE)
        waiting = asyncio.create_task(view.changed(3))
        await asyncio.sleep(0)
        version = view.state.version
        later.set()

        assert await waiting
        await until(view, lambda: view.state.version > version and not view.state.pods)


async def test_nobody_waits_for_a_list_that_is_forbidden() -> None:
    async with viewing(pods=[failure(403)] * 1000) as (view, _):
        async with asyncio.timeout(60):
            assert not await view.first_list(3600)


async def test_expired_credentials_are_loaded_again() -> None:
    async with viewing(nodes=[failure(401), page(NODE), watch(hold=True)]) as (view, server):
        await until(view, lambda: isinstance(view.health(), Live))

        assert server.loads == 3


async def test_after_an_unexpected_error_an_optional_kind_is_unknown(monkeypatch) -> None:
    first, second = obj("first", namespace="jhub"), obj("second", namespace="jhub")
    script = [page(first), watch(event("ADDED", second)), *[page(first, second)] * 1000]
    async with viewing((NODES, PODS, CLAIMS), claims=script) as (view, _):
        put = view.state.put

        def fail_on_second(thing: KubeObject | Undecodable) -> None:
            if "second" in str(thing):
                raise KeyError(thing)
            put(thing)

        monkeypatch.setattr(view.state, "put", fail_on_second)
        await until(view, lambda: view.state.known("PersistentVolumeClaim"))
        await until(view, lambda: not view.state.known("PersistentVolumeClaim"))


@pytest.mark.parametrize("kind", [it for it in KINDS if not it.required], ids=lambda it: it.name)
async def test_a_kind_that_no_server_lacks_is_unknown_while_a_proxy_finds_nothing(kind) -> None:
    async with viewing((NODES, PODS, kind), **{kind.plural: [failure(404)] * 1000}) as (view, _):
        assert await view.first_list(PATIENCE)

        assert view.state.known(kind.name) == (kind.name == "DeviceClass")


async def test_the_status_of_an_autoscaler_is_unknown_while_a_proxy_finds_nothing() -> None:
    """If there were none, the hub would refuse those for whom a node can come."""
    status = obj("status", namespace="kube-system")
    found = [page(status), *[failure(404)] * 1000]
    scaling = (status_at("kube-system/status"),)
    async with viewing(scaling_kinds=scaling, configmaps=found) as (view, server):
        await until(view, lambda: len(server.scripts["configmaps"]) < 990)

        assert view.autoscalers.has_had("ConfigMap")
        assert not view.autoscalers.known("ConfigMap")


async def test_a_kind_that_the_server_does_not_have_stays_known_while_the_server_restarts() -> None:
    scripts = {"deviceclasses": [failure(404), *[failure(403), failure(503)] * 500]}
    async with viewing((NODES, PODS, CLASSES), **scripts) as (view, server):
        await until(view, lambda: len(server.scripts["deviceclasses"]) < 990)

        assert view.state.known("DeviceClass")
        assert not view.forbidden()


@pytest.mark.parametrize(("api", "is_known"), [(404, True), (403, False), (None, False)])
async def test_a_forbidden_kind_has_no_objects_if_the_server_lacks_its_api(api, is_known) -> None:
    """RBAC also forbids what doesn't exist."""
    group = raw(b"{}") if api is None else failure(api)
    scripts = {"deviceclasses": [failure(403)] * 1000, "v1": [group] * 1000}
    async with viewing((NODES, PODS, CLASSES), **scripts) as (view, _):
        assert await view.first_list(PATIENCE)

        assert view.state.known("DeviceClass") is is_known
        assert view.forbidden() == (() if is_known else ("deviceclasses",))


@pytest.mark.each_python
async def test_a_second_start_does_nothing_and_stop_leaves_no_task() -> None:
    before = asyncio.all_tasks()
    async with viewing() as (view, server):
        view.start()
        assert await view.first_list(PATIENCE)
        assert len([query for query in server.queries if "limit" in query]) == 2

    view_tasks = {task for task in asyncio.all_tasks() - before if "view" in repr(task)}
    assert not view_tasks


async def test_the_first_list_waits_for_optional_kinds_too() -> None:
    later = asyncio.Event()
    claims = [after(later, page(obj("claim", namespace="jhub"))), watch(hold=True)]
    async with viewing((NODES, PODS, CLAIMS), claims=claims) as (view, _):
        waiting = asyncio.create_task(view.first_list(PATIENCE))
        await until(view, lambda: isinstance(view.health(), Live))
        assert not waiting.done()
        later.set()

        assert await waiting
        assert view.state.known("PersistentVolumeClaim")


async def test_an_optional_kind_is_unknown_while_its_changes_may_have_been_missed(
    monkeypatch,
) -> None:
    monkeypatch.setattr("gpuspawner.cluster.health.REREAD_SECONDS", 0.2)
    is_read = asyncio.Event()
    forget = after(is_read, failure(410))
    script = [page(obj("claim", namespace="jhub")), forget, *[failure(500)] * 1000]
    async with viewing((NODES, PODS, CLAIMS), claims=script) as (view, _):
        assert await view.first_list(PATIENCE)
        is_read.set()
        await until(view, lambda: not view.state.known("PersistentVolumeClaim"))

        await until(view, lambda: isinstance(view.health(), Live))
        assert not view.state.known("PersistentVolumeClaim")


VERSION_1_30 = raw(b'{"major": "1", "minor": "30", "gitVersion": "v1.30.14"}')

rules_of = partial(Rules.of_version, schedulers=("user-scheduler",))


async def asked(*script: object) -> tuple[str, list[RequestError]]:
    lost: list[RequestError] = []
    server = ScriptedServer(version=list(script))
    async with server.serving() as client:
        return await server_version(client, FAST, lost.append), lost


async def test_the_servers_version_is_read_as_it_writes_it() -> None:
    assert await asked(VERSION_1_30) == ("v1.30.14", [])


async def test_a_fault_is_reported_and_the_question_is_asked_again() -> None:
    version, lost = await asked(failure(401), failure(503), VERSION_1_30)

    assert version == "v1.30.14"
    assert [error.status for error in lost] == [401, 503]


@pytest.mark.parametrize("answer", [failure(403), failure(404), raw(b"<html>"), raw(b"[]")])
async def test_a_server_without_a_version_counts_as_the_newest(answer) -> None:
    version, lost = await asked(answer)

    assert (version, lost) == ("", [])
    assert Rules.of_version(version) == Rules.of_version("v1.37.0")


async def test_the_view_is_unreachable_until_it_knows_the_servers_rules() -> None:
    versions = [*[failure(503)] * 3, VERSION_1_30]
    async with viewing((NODES,), rules=rules_of, version=versions) as (view, _):
        await view.changed(PATIENCE)
        assert isinstance(view.health(), Unreachable)

        await until(view, lambda: isinstance(view.health(), Live))
        assert view.state.rules == rules_of("v1.30.14")


SIDECAR = {"name": "s", "restartPolicy": "Always", "ports": [{"hostPort": 80}]}
WITH_SIDECAR = obj("a", "2", "jhub", spec={"nodeName": "n1", "initContainers": [SIDECAR]})
VERSION_1_37 = raw(b'{"gitVersion": "v1.37.2"}')


@pytest.mark.parametrize("no_version", [[], [failure(503)], [failure(404), raw(b"{}")]])
async def test_after_an_upgrade_of_the_server_pods_are_read_by_its_new_rules(
    no_version, monkeypatch
) -> None:
    monkeypatch.setattr("gpuspawner.cluster.view.VERSION_SECONDS", 0.01)
    upgraded, later = asyncio.Event(), asyncio.Event()
    versions = [VERSION_1_30, *no_version, VERSION_1_30, after(upgraded, VERSION_1_37)]
    versions += [VERSION_1_37] * 10_000
    pods = [
        page(WITH_SIDECAR),
        after(later, watch(event("ADDED", obj("b", "3", "jhub")), hold=True)),
        page(WITH_SIDECAR, version="4"),
        watch(hold=True),
    ]
    async with viewing(rules=rules_of, version=versions, pods=pods) as (view, _):
        assert await view.first_list(PATIENCE)
        assert not view.state.pods["jhub/a"].ports
        known = view.state.version

        upgraded.set()
        await until(view, lambda: view.state.rules == rules_of("v1.37.2"))
        assert view.state.version > known
        later.set()
        await until(view, lambda: bool(view.state.pods["jhub/a"].ports))
        await until(view, lambda: isinstance(view.health(), Live))


@pytest.mark.parametrize("first", [[VERSION_1_30], []], ids=["when it is back", "at the start"])
async def test_a_server_that_starts_and_forbids_its_version_is_asked_again_soon(first) -> None:
    """Before it has read RBAC's objects, it forbids everything."""
    versions = [*first, failure(403), VERSION_1_37]
    async with viewing((NODES,), AT_ONCE, rules=rules_of, version=versions) as (view, _):
        assert await view.first_list(PATIENCE)
        if first:
            view.contact.wake()
        await until(view, lambda: not versions)
        await until(view, lambda: view.state.rules == rules_of("v1.37.2"))


async def test_a_hub_that_may_not_read_the_version_asks_twice_after_an_outage() -> None:
    versions = [failure(403)] * 100
    async with viewing((NODES,), AT_ONCE, rules=rules_of, version=versions) as (view, _):
        await until(view, lambda: len(versions) == 98)
        view.contact.wake()
        await until(view, lambda: len(versions) == 96)
        await asyncio.sleep(0.2)
        assert len(versions) == 96


@pytest.mark.parametrize(("older", "newer"), [("v1.30.14", "v1.37.2"), ("v1.33.5", "v1.33.6")])
async def test_servers_that_are_upgraded_one_by_one_do_not_change_the_rules_with_each_answer(
    older, newer, monkeypatch
) -> None:
    monkeypatch.setattr("gpuspawner.cluster.view.VERSION_SECONDS", 0.01)
    old, new = (raw(b'{"gitVersion": "%s"}' % it.encode()) for it in (older, newer))
    begun = asyncio.Event()
    versions = [old, after(begun, new), *[old, new, new, old, new] * 10, *[new] * 10_000]
    async with viewing((NODES,), rules=rules_of, version=versions) as (view, _):
        await until(view, lambda: view.state.rules == rules_of(older))
        judged, judge_by = [], view.state.judge_by
        monkeypatch.setattr(
            view.state, "judge_by", lambda rules: (judged.append(rules), judge_by(rules))
        )
        begun.set()
        await until(view, lambda: len(versions) < 9_990)
        assert judged == [*map(rules_of, (newer, older, newer))]


async def test_given_rules_are_not_asked_for() -> None:
    async with viewing((NODES,), rules=rules_of("1.30"), version=[VERSION_1_37]) as (view, _):
        assert await view.first_list(PATIENCE)
        assert view.state.rules == rules_of("1.30")
