"""A hub that is handed on has nothing left of the test before."""

from __future__ import annotations

import pytest

from tests.fixtures.cluster import AddNodes
from tests.hub.configurations import ANSWER_AT_ONCE
from tests.hub.kept import Keeper
from tests.hub.running import RunningHub

CONFIGURATION = ""
ORPHAN = {
    "metadata": {"name": "orphan", "labels": {"component": "singleuser-server"}},
    "spec": {"containers": [{"name": "c", "image": "x"}]},
}

SLOW_TO_END = (
    ANSWER_AT_ONCE
    + """
import asyncio

async def end_late(spawner):
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(2)

c.GPUSpawner.pre_spawn_hook = end_late
"""
)
"""The hub gives a start that is stopped one second to end."""

LIMITS = {"limits": [{"type": "Container", "defaultRequest": {"memory": "20Gi"}}]}


def leave_something(keeper: Keeper, in_this: RunningHub) -> None:
    with keeper.lending() as lend:
        hub = lend(CONFIGURATION)
        assert hub is in_this
        hub.raw("POST", "/users/bob", b"{")
        api, namespace = hub.pods.cluster.api, f"/api/v1/namespaces/{hub.pods.namespace}"
        api.create(f"{namespace}/pods", ORPHAN)
        api.create(f"{namespace}/limitranges", {"metadata": {"name": "sizes"}, "spec": LIMITS})


@pytest.mark.xdist_group("kept")
def test_what_a_test_leaves_in_a_hub_fails_it_and_the_next_one_has_another_hub(
    keeper: Keeper, add_nodes: AddNodes
) -> None:
    add_nodes("single")
    with keeper.lending() as lend:
        first = lend(CONFIGURATION)
        first.start_until_ready("alice")
        first.api("POST", "/users/bob")
    assert not first.pods.all()
    assert [it["name"] for it in first.api("GET", "/users").json()] == ["admin"]

    told = "Couldn't parse JSON(.|\n)*the pod orphan of a stopped server\nlimitranges/sizes"
    with pytest.raises(AssertionError, match=told):
        leave_something(keeper, first)

    with keeper.lending() as lend:
        third = lend(CONFIGURATION)
        assert third is not first
        third.expect_errors("Couldn't parse JSON")
        third.raw("POST", "/users/bob", b"{")


@pytest.mark.xdist_group("kept")
def test_a_start_that_ends_late_is_gone_before_the_next_test(
    keeper: Keeper, add_nodes: AddNodes
) -> None:
    add_nodes("single")
    with keeper.lending() as lend:
        first = lend(SLOW_TO_END)
        assert first.start("bob").status_code == 202

    with keeper.lending() as lend:
        assert lend(SLOW_TO_END) is first
        assert [it["name"] for it in first.api("GET", "/users").json()] == ["admin"]
