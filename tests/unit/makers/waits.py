"""A pod that waits for a node, and what its autoscalers say."""

from __future__ import annotations

import asyncio
import math

import msgspec

from gpuspawner.cluster.background import TurnsToLook
from gpuspawner.cluster.pod_events import Heard
from gpuspawner.cluster.view import ClusterView
from gpuspawner.kube.autoscaling import Event, NodePool
from gpuspawner.launch.unscheduled import AwaitedNode, WhyUnscheduled
from gpuspawner.preflight.decision import Refuse, Wait
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.scaling.outlook import CanScaleUp, MayScaleUp, Source, WhyNoNode
from gpuspawner.scaling.pools import Pools
from gpuspawner.scaling.usual_times import TRIAL_SECONDS
from tests.unit.makers.worlds import NAMESPACE, Plain, StillView, node, pod, proposal, settle

AT_MAXIMUM = "pod didn't trigger scale-up: 1 max node group size reached"
SCALE_UP = "pod triggered scale-up: [{gpus 0->1 (max: 4)}]"
UNKNOWN = MayScaleUp(Source.NODES)


async def answered(view: ClusterView, question: WhyUnscheduled) -> Refuse:
    """Ask as a start does, until there is a refusal."""
    while (refusal := question()) is None:
        await view.changed(1)
    return refusal


class World:
    """A full node of a cloud, and a pod that waits for another one."""

    def __init__(
        self, scale_up: CanScaleUp | MayScaleUp = UNKNOWN, provider: str = "aws:///z/i-1"
    ) -> None:
        full = ("Pod", pod("x", 1, on="n"))
        self.view = StillView(("Node", node("n", 1, providerID=provider)), full)
        pools = Pools(self.view.state, self.view.autoscalers)
        self.preflight = Preflight(self.view, pools=pools)
        self.check = self.preflight.decider.check_sent
        self.turns = TurnsToLook(self.view.wake)
        self.asked = proposal("a")
        self.wait = Wait(self.asked.grant, scale_up)
        self._sent = 0

    async def __aenter__(self) -> World:
        self.view.put("Pod", pod("a"))
        self.task = asyncio.create_task(self.in_vain())
        await settle()
        return self

    async def in_vain(
        self, name: str = "a", trial: float = TRIAL_SECONDS, most: float = math.inf
    ) -> Refuse:
        """Return why no node comes for a pod, once none does."""
        asked = proposal(name)
        with self.view.events.of(*asked.key) as heard:
            node = self.awaited(heard, asked, self.wait, trial, most)
            return await answered(self.view, node.look)

    def awaited(
        self,
        heard: Heard,
        asked: Proposal,
        wait: Wait,
        trial: float = TRIAL_SECONDS,
        most: float = math.inf,
    ) -> AwaitedNode:
        cluster = self.view, self.preflight.to_come, self.check, self.turns
        return AwaitedNode(*cluster, heard, asked, wait, trial, most)

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def hears(self, reason: str, message: str, uid: str = "a") -> None:
        self._sent += 1
        plain: Plain = {
            "metadata": {
                "namespace": NAMESPACE,
                "name": f"a.{self._sent}",
                "resourceVersion": str(self._sent),
            },
            "involvedObject": {"name": "a", "uid": uid},
            "reason": reason,
            "message": message,
        }
        self.view.events.hear(msgspec.convert(plain, Event))
        self.view.wake()
        await settle()

    async def refusal(self) -> Refuse:
        return await asyncio.wait_for(self.task, 3600)

    async def still_waits(self, seconds: float = 0) -> bool:
        """Whether the start waits after some more seconds too."""
        await asyncio.sleep(seconds)
        await settle()
        return not self.task.done()

    def grows(self, ready: str = "", **template: object) -> None:
        """Let a NodePool of Karpenter's make A100s; *ready* is the status of that condition."""
        conditions = [{"type": "Ready", "status": ready}] if ready else []
        plain = {
            "metadata": {"name": "k"},
            "spec": {"template": {"metadata": {"labels": {"gpu": "a100"}}, "spec": template}},
            "status": {"conditions": conditions},
        }
        self.view.autoscalers.put(msgspec.convert(plain, NodePool))


def whys(refusal: Refuse) -> list[WhyNoNode]:
    return [it.why for it in refusal.obstacles]
