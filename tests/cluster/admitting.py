"""Asks the preflight with a real API server, and checks what its scheduler then does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

from gpuspawner.cluster.client import Client
from gpuspawner.cluster.kinds import SCALING_KINDS
from gpuspawner.cluster.view import ClusterView
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.user_options import GPURequest
from gpuspawner.preflight.decision import Decision, Refuse
from gpuspawner.preflight.dry_runs import DryRun
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.preflight.proposed_pod import Proposal
from localcluster import Fleet, LocalCluster, NodeGroup, Taint
from localcluster.client import ApiError
from tests.cluster.views import aside, load, until, until_autoscalers_are_known, viewing
from tests.fixtures.cluster import AddNodes
from tests.waiting import PATIENCE, wait_for

GPU = "nvidia.com/gpu"
GI = 2**30


class Asker:
    """Does what a hub does in one namespace, as far as admission is concerned.

    The nodes of its accelerator have the label ``pool`` with the name of its namespace.

    Attributes:
        view: The live view.
        preflight: The preflight on this view.
        admission: The API server's dry run.
        offers: The accelerators and memory sizes on offer.
    """

    def __init__(
        self, cluster: LocalCluster, view: ClusterView, client: Client, namespace: str
    ) -> None:
        self.view = view
        self.preflight = Preflight(view)
        self._cluster = cluster
        self._client = client
        self.admission = DryRun(client, 10)
        self.namespace = namespace
        self.offers = Offers.parse(
            accelerators={"a": {"node_selector": {"pool": namespace}, "counts": [1, 2, 4]}},
            memory_choices=["1Gi", "2Gi", "4Gi"],
        )

    def patience(self, seconds: float) -> None:
        """Set how long a dry run may take, in seconds."""
        self.admission = DryRun(self._client, seconds)

    def proposal(self, gpus: int = 1, memory: int = GI, **spec: object) -> Proposal:
        """Return a proposal with so many GPUs; *spec* adds to its pod's spec."""
        accelerator = self.offers.accelerators["a"] if gpus else None
        grant = Grant(accelerator, gpus, memory=memory)
        return Proposal(self.namespace, "server", self._pod(grant, spec), grant)

    def variant(self, request: GPURequest) -> tuple[Grant, dict[str, Any]]:
        """Return the grant and the pod for an alternative request."""
        sizes = {size.text: size.bytes for size in self.offers.memory_choices}
        other = self.offers.accelerators.get(request.accelerator or "")
        granted = Grant(other, request.gpus, memory=sizes[request.memory or "1Gi"])
        return granted, self._pod(granted, {})

    def _pod(self, grant: Grant, spec: dict[str, object]) -> dict[str, Any]:
        amounts = {"memory": str(grant.memory)}
        if grant.accelerator is not None:
            amounts[GPU] = str(grant.gpus)
        notebook = {"name": "notebook", "image": "x", "resources": {"limits": amounts}}
        return {
            "metadata": {"name": "server"},
            "spec": {
                "nodeSelector": {"pool": self.namespace} if grant.accelerator else {},
                "terminationGracePeriodSeconds": 0,
                "containers": [notebook],
                **spec,
            },
        }

    async def until(self, proposal: Proposal, is_true: Callable[[Decision], bool]) -> Decision:
        """Ask until the answer satisfies *is_true*: new rules reach the API server by a watch.

        A refusal comes with its alternatives.

        Raises:
            TimeoutError: No answer did; the text is the last answer.
        """
        last: Decision | None = None
        try:
            async with asyncio.timeout(PATIENCE):
                while not is_true(last := await self.examine(proposal)):
                    await self.view.changed(0.05)
        except TimeoutError:
            raise TimeoutError(f"the last answer was {last}") from None
        assert last is not None
        return last

    async def examine(self, proposal: Proposal) -> Decision:
        """Ask once, as for the form's answer; a refusal comes with its alternatives."""
        decision = await self.preflight.examine(proposal, self.admission)
        if not isinstance(decision, Refuse):
            return decision
        return await self.preflight.with_alternatives(decision, proposal, self, self.admission)

    async def until_taken(self, proposal: Proposal) -> None:
        """Create the pod as soon as the API server accepts it, and wait until it is bound."""

        def create() -> str | None:
            with suppress(ApiError):
                return self._scheduled(proposal)
            return None

        assert await aside(lambda: wait_for(create))
        await until(self.view, lambda: self.is_bound(proposal))

    def is_bound(self, proposal: Proposal) -> bool:
        """Return whether the view shows a node for the pod."""
        return "/".join(proposal.key) in self.view.state.pods

    async def scheduled(self, proposal: Proposal) -> str:
        """Create the pod, and return the node that the scheduler finds; "" for none.

        Raises:
            ApiError: The API server refuses the pod.
        """
        return await aside(lambda: self._scheduled(proposal))

    async def until_known(self, node: str) -> None:
        """Wait until the view shows a node, and the scheduler has put a pod onto it.

        The scheduler's watch may be behind the view's, and it calls a pod unschedulable that comes
        before the pod's node. The pod is gone afterwards.
        """
        key = f"{self.namespace}/probe"
        await until(self.view, lambda: node in self.view.state.nodes)
        await aside(lambda: self._probe(node))
        await until(self.view, lambda: key not in self.view.state.pods)

    async def refused(self, proposal: Proposal) -> ApiError:
        """Create the pod, and return the API server's refusal."""
        try:
            await self.scheduled(proposal)
        except ApiError as error:
            return error
        raise AssertionError("the API server has taken the pod")

    def _scheduled(self, proposal: Proposal) -> str:
        pods = f"/api/v1/namespaces/{self.namespace}/pods"
        self._cluster.api.create(pods, dict(proposal.pod))
        path = f"{pods}/{proposal.name}"
        made = wait_for(lambda: _decided(self._cluster.api.get(path)))
        node: str = made["spec"].get("nodeName", "")
        return node

    def _probe(self, node: str) -> None:
        pods = f"/api/v1/namespaces/{self.namespace}/pods"
        is_the_node = {"key": "metadata.name", "operator": "In", "values": [node]}
        terms = {"nodeSelectorTerms": [{"matchFields": [is_the_node]}]}
        spec = {
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "probe", "image": "x"}],
        }
        self._cluster.api.create(pods, {"metadata": {"name": "probe"}, "spec": spec})
        wait_for(lambda: self._cluster.api.get(f"{pods}/probe")["spec"].get("nodeName"))
        self._cluster.api.delete(f"{pods}/probe", grace=0)
        wait_for(lambda: not self._cluster.api.items(pods))

    def with_spec(self, proposal: Proposal, **spec: object) -> Proposal:
        """Return the proposal with other fields of the pod's spec."""
        pod = proposal.pod
        return replace(proposal, pod={**pod, "spec": {**pod["spec"], **spec}})

    def named(self, proposal: Proposal, name: str) -> Proposal:
        """Return the proposal under another name."""
        return replace(proposal, name=name, pod={**proposal.pod, "metadata": {"name": name}})


async def add_node(
    asker: Asker,
    add_nodes: AddNodes,
    *taints: Taint,
    gpus: int = 4,
    memory: str = "8Gi",
    **labels: str,
) -> str:
    """Add a node of the asker's accelerator; return its name once everybody knows it."""
    room = {"cpu": "16", "memory": memory, "pods": "110", GPU: str(gpus)}
    its = {"pool": asker.namespace, **labels}
    group = NodeGroup(asker.namespace, 1, room, its, taints)
    [name] = await aside(lambda: add_nodes(Fleet((group,))))
    await asker.until_known(name)
    return name


def _decided(pod: dict[str, Any]) -> dict[str, Any] | None:
    conditions = {it["type"]: it["status"] for it in pod["status"].get("conditions", ())}
    return pod if pod["spec"].get("nodeName") or conditions.get("PodScheduled") == "False" else None


@asynccontextmanager
async def asking(cluster: LocalCluster, namespace: str) -> AsyncIterator[Asker]:
    """Open a view and a client, and yield an asker in this namespace."""
    client = Client(partial(load, cluster.kubeconfig))
    try:
        async with viewing(cluster.kubeconfig, scaling_kinds=SCALING_KINDS) as view:
            assert await view.first_list(PATIENCE)
            await until_autoscalers_are_known(view)
            yield Asker(cluster, view, client, namespace)
    finally:
        await client.close()
