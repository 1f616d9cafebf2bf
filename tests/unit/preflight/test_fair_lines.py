"""Nobody in line takes, or keeps others from, more than their own part."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from typing import Any

import pytest

from gpuspawner.cluster.kinds import KINDS
from gpuspawner.preflight.decision import Refuse
from tests.unit.preflight.line_stage import FULL, Stage
from tests.unit.preflight.worlds import GPU, NAMESPACE, node, pod, proposal, settle

pytestmark = pytest.mark.each_python


def home(user: str, claim_mode: str) -> list[tuple[str, Any]]:
    """A user's home directory: a claim, and the volume that is bound to it."""
    claim, volume = f"claim-{user}", f"volume-{user}"
    modes = {"accessModes": [claim_mode], "storageClassName": "standard"}
    return [
        (
            "PersistentVolumeClaim",
            {
                "metadata": {
                    "name": claim,
                    "namespace": NAMESPACE,
                    "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
                },
                "spec": {**modes, "volumeName": volume},
                "status": {"phase": "Bound"},
            },
        ),
        (
            "PersistentVolume",
            {
                "metadata": {"name": volume},
                "spec": {
                    **modes,
                    "capacity": {"storage": "1Gi"},
                    "csi": {"driver": "disks", "volumeHandle": volume},
                    "claimRef": {"namespace": NAMESPACE, "name": claim},
                },
                "status": {"phase": "Bound"},
            },
        ),
    ]


def with_home(user: str) -> Any:
    """What a pod with a user's home directory has besides."""
    return {"volumes": [{"name": "home", "persistentVolumeClaim": {"claimName": f"claim-{user}"}}]}


async def test_whose_home_is_in_use_by_another_server_keeps_nobody_else_waiting() -> None:
    alone = "ReadWriteOncePod"
    stage = Stage(
        ("Node", node("n", 2)),
        ("Node", node("m", 1)),
        *home("ann", alone),
        *home("bob", alone),
        ("Pod", pod("other-of-ann", 1, on="m", **with_home("ann"))),
        ("Pod", pod("x", 2, on="n")),
    )
    for kind in KINDS:
        stage.view.state.mark_known(kind.name)
    with (
        stage.joining("ann", pod=with_home("ann")) as ann,
        stage.joining("bob", since=2.0, pod=with_home("bob")) as bob,
    ):
        stage.view.remove_pod("x")
        await asyncio.wait_for(bob, 10)

        assert not ann.done()


async def test_what_is_left_beside_those_who_wait_is_given_once_until_the_view_shows_it() -> None:
    def asks(gpus: int, memory: str) -> Any:
        amounts = {GPU: str(gpus), "memory": memory}
        return {"containers": [{"name": "c", "resources": {"requests": amounts}}]}

    stage = Stage(("Node", node("n", 4)), ("Pod", pod("x", on="n", **asks(0, "200Gi"))))
    with (
        stage.joining("large", pod=asks(3, "100Gi")) as large,
        stage.joining("one", since=2.0, pod=asks(1, "0")) as one,
        stage.joining("other", since=3.0, pod=asks(1, "0")) as other,
    ):
        await settle()

        assert [it.done() for it in (large, one, other)] == [False, True, False]


async def test_a_newcomer_is_behind_those_in_line_even_if_the_clock_was_set_back() -> None:
    stage = Stage(*FULL)
    with stage.joining("two", 2, since=time.time() + 3600):
        stage.view.remove_pod("x")
        await settle()

        assert isinstance(stage.preflight.check(proposal("new")), Refuse)


async def test_who_joins_again_before_the_first_wait_ends_keeps_what_holds_it_back() -> None:
    stage = Stage(*FULL)

    async def never() -> bool:
        return False

    first = ExitStack()
    first.enter_context(stage.joining("ann"))
    with stage.joining("ann", allows=never) as again:
        first.close()
        stage.view.remove_pod("x")
        await settle()

        assert stage.line.is_limited(stage.ticket("ann"))
        assert not again.done()
