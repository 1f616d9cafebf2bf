"""The view follows a program's objects in the version that the API server prefers, if any."""

from __future__ import annotations

import asyncio
import gc
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

from aiohttp import web

from gpuspawner.cluster import api_groups
from gpuspawner.cluster.kinds import KARPENTER_KINDS, KUEUE_KINDS, NODES
from gpuspawner.cluster.view import ClusterView
from gpuspawner.kube.kueue import LocalQueue
from tests.unit.makers.scripted import (
    Step,
    after,
    failure,
    obj,
    page,
    preferring,
    watch,
)
from tests.unit.makers.views import until, viewing

PLURALS = ("localqueues", "clusterqueues", "cohorts", "resourceflavors", "workloads")


def queues(**scripts: list[Step]) -> AbstractAsyncContextManager[tuple[ClusterView, object]]:
    """Follow the queues of a scripted server, and nothing else."""
    lists = {it: [page(), watch(hold=True)] for it in PLURALS}
    asked = {"kueue.x-k8s.io": [preferring("v1beta1")], **lists, **scripts}
    return viewing((), queue_kinds=KUEUE_KINDS, **asked)


async def test_what_the_api_server_has_is_known() -> None:
    queue = obj("gpus", namespace="jhub", spec={"clusterQueue": "team-a"})
    async with queues(localqueues=[page(queue), watch(hold=True)]) as (view, _):
        await until(view, lambda: view.queues.knows_quotas)

        found = view.queues.find(LocalQueue, "gpus", "jhub")
        assert found is not None
        assert found.spec.cluster_queue == "team-a"
        await until(view, lambda: view.queues.knows_workloads)


async def test_without_kueue_there_are_no_queues_until_it_is_installed(monkeypatch) -> None:
    monkeypatch.setattr(api_groups, "AGAIN_SECONDS", 0.01)
    answers = [failure(404), failure(404), preferring("v1beta2")]
    async with queues(**{"kueue.x-k8s.io": answers}) as (view, _):
        await until(view, lambda: view.queues.knows_quotas)
        await until(view, lambda: not answers and view._groups[0].reflectors != [])

        assert {it.kind.path.split("/")[3] for it in view._groups[0].reflectors} == {"v1beta2"}


async def test_a_hub_that_starts_during_an_outage_learns_of_kueue_once_the_server_is_back() -> None:
    """Else, it would ask again only a minute later."""
    answers = [failure(503), preferring("v1beta2")]
    async with queues(**{"kueue.x-k8s.io": answers}) as (view, _):
        await until(view, lambda: view._groups[0]._is_asked)

        view.contact.wake()

        await until(view, lambda: view.queues.knows_quotas)


async def test_after_an_update_that_takes_the_old_version_away_the_new_one_is_followed(
    monkeypatch,
) -> None:
    monkeypatch.setattr(api_groups, "AGAIN_SECONDS", 0.01)
    old, new = obj("old", namespace="jhub"), obj("new", namespace="jhub")
    answers = [preferring("v1beta1")] * 9 + [failure(503), failure(404), preferring("v1beta2")]
    lists = [page(old), watch(hold=True), page(new), watch(hold=True)]
    others = {it: [page(), watch(hold=True)] * 2 for it in PLURALS[1:]}
    scripts = {"kueue.x-k8s.io": answers, "localqueues": lists, **others}
    async with queues(**scripts) as (view, _):
        await until(view, lambda: view.queues.find(LocalQueue, "old", "jhub") is not None)
        await until(view, lambda: view.queues.find(LocalQueue, "new", "jhub") is not None)
        # What the new list lacks goes at its end.
        await until(view, lambda: view.queues.find(LocalQueue, "old", "jhub") is None)
        await until(view, lambda: view.queues.knows_quotas)


async def test_cohorts_in_an_older_version_than_the_rest_are_unknown_rather_than_none() -> None:
    async with queues(cohorts=[failure(404)] * 100) as (view, _):
        await until(view, lambda: view.queues.knows_workloads and view.queues.known("ClusterQueue"))
        await until(view, lambda: not view._groups[0].is_open)

        assert not view.queues.knows_quotas


async def test_kinds_that_the_hub_may_not_read_are_named_and_unknown() -> None:
    async with queues(workloads=[failure(403)] * 100) as (view, _):
        await until(view, lambda: view.forbidden() == ("workloads",))
        await until(view, lambda: view.queues.knows_quotas)

        assert not view.queues.knows_workloads


async def test_an_update_and_the_end_of_the_view_leave_no_error_in_the_hub_s_log(
    monkeypatch, caplog
) -> None:
    monkeypatch.setattr(api_groups, "AGAIN_SECONDS", 0.01)
    answers = [preferring("v1beta1")] * 3 + [preferring("v1beta2")] * 1000
    lists = {it: [page(), watch(hold=True)] * 2 for it in PLURALS}
    async with queues(**{"kueue.x-k8s.io": answers, **lists}) as (view, _):
        await until(
            view, lambda: any("v1beta2" in it.kind.path for it in view._groups[0].reflectors)
        )

    gc.collect()  # asyncio tells of an error that nobody has looked at when it is forgotten
    assert [it.message for it in caplog.records if it.name == "asyncio"] == []


# Karpenter's NodePools


viewing_karpenter = partial(viewing, (), scaling_kinds=KARPENTER_KINDS)


def karpenter(version: str, **scripts: list[Step]) -> dict[str, Any]:
    lists = {it: [page(), watch(hold=True)] for it in ("nodepools", "nodeclaims")}
    return {"karpenter.sh": [preferring(version)], **lists, **scripts}


async def test_node_pools_of_a_karpenter_that_serves_only_v1beta1_are_known() -> None:
    pools = [page(obj("gpus", spec={"limits": {"nvidia.com/gpu": "1"}})), watch(hold=True)]
    async with viewing_karpenter(**karpenter("v1beta1", nodepools=pools)) as (view, _):
        await until(view, lambda: view.autoscalers.known("NodePool"))

        assert {it.kind.path for it in view._groups[0].reflectors} == {
            "/apis/karpenter.sh/v1beta1/nodepools",
            "/apis/karpenter.sh/v1beta1/nodeclaims",
        }
        assert len(view.autoscalers.node_pools) == 1


async def test_a_karpenter_from_before_node_pools_is_not_one_without_node_pools() -> None:
    gone = {it: [failure(404)] * 100 for it in ("nodepools", "nodeclaims")}
    async with viewing_karpenter(**karpenter("v1alpha5", **gone)) as (view, _):
        await until(view, lambda: not view._groups[0].is_open)

        assert not view.autoscalers.known("NodePool")


async def test_a_cluster_without_karpenter_is_known_to_have_no_node_pools() -> None:
    async with viewing_karpenter(**{"karpenter.sh": [failure(404)]}) as (view, _):
        await until(view, lambda: view.autoscalers.known("NodePool"))

        assert view.autoscalers.node_pools == []


async def test_after_karpenter_is_removed_it_is_known_for_good_that_there_are_no_node_pools(
    monkeypatch,
) -> None:
    monkeypatch.setattr(api_groups, "AGAIN_SECONDS", 0.01)
    asked = [preferring("v1"), *[failure(404)] * 40]
    gone = [failure(404)] * 400
    pools = [page(obj("gpus")), watch(), *gone]
    scripts = {"karpenter.sh": asked, "nodepools": pools, "nodeclaims": [page(), watch(), *gone]}
    async with viewing_karpenter(**scripts) as (view, _):

        def knows() -> bool:
            return all(view.autoscalers.known(it.name) for it in KARPENTER_KINDS)

        await until(view, lambda: knows() and not view.autoscalers.node_pools)
        known: list[bool] = []
        view.listen(lambda: known.append(knows()))

        await until(view, lambda: len(asked) < 5)

        assert known
        assert all(known)


async def test_an_autoscaler_of_which_a_proxy_knows_nothing_is_back_as_soon_as_the_nodes_are(
    monkeypatch,
) -> None:
    """Else, there is no autoscaler for a minute, and starts are refused that a node would help."""
    monkeypatch.setattr(api_groups, "AGAIN_SECONDS", 0.01)
    knows = asyncio.Event()

    def known(there: Step) -> Step:
        async def step(request: web.Request) -> web.StreamResponse:
            return await (there if knows.is_set() else failure(404))(request)

        return step

    async def pools(request: web.Request) -> web.StreamResponse:
        there = watch(hold=True) if "watch" in request.query else page(obj("k"))
        return await known(there)(request)

    scripts = {
        "karpenter.sh": [preferring("v1"), *[known(preferring("v1"))] * 1000],
        "nodepools": [page(obj("k")), *[pools] * 1000],
        "nodeclaims": [page(), *[known(watch(hold=True))] * 1000],
        "nodes": [page(), failure(404), after(knows, page()), watch(hold=True)],
    }
    async with viewing((NODES,), scaling_kinds=KARPENTER_KINDS, **scripts) as (view, _):
        await until(view, lambda: view.autoscalers.tells("NodePool"))
        await until(view, lambda: not view._groups[0].reflectors)
        monkeypatch.setattr(api_groups, "AGAIN_SECONDS", 1000.0)
        await asyncio.sleep(0.1)  # it waits that long from now on

        knows.set()

        await until(view, lambda: view.autoscalers.tells("NodePool"))


async def test_a_proxy_that_knows_no_api_takes_nothing_away_that_is_watched(monkeypatch) -> None:
    monkeypatch.setattr(api_groups, "AGAIN_SECONDS", 0.01)
    asked = [preferring("v1beta1"), *[failure(404)] * 20]
    listed = [page(obj("gpus", namespace="jhub")), watch(hold=True)]
    scripts = {"kueue.x-k8s.io": asked, "localqueues": listed, "cohorts": [failure(404)] * 400}
    async with queues(**scripts) as (view, _):
        await until(view, lambda: len(asked) < 5)

        assert view.queues.find(LocalQueue, "gpus", "jhub") is not None
        assert not view.queues.known("Cohort")
