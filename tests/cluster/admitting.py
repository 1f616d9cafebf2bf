"""Somebody who asks the preflight before a real API server, and what the scheduler then does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

from gpuspawner.admission.dry_run import DryRun
from gpuspawner.cluster.client import Client
from gpuspawner.cluster.view import ClusterView
from gpuspawner.offers import Offers
from gpuspawner.options import GPURequest
from gpuspawner.policy import Grant
from gpuspawner.preflight.admitted import AdmittedPreflight
from gpuspawner.preflight.ask import Ask
from gpuspawner.preflight.decision import Decision
from gpuspawner.preflight.preflight import Preflight
from localcluster import LocalCluster
from localcluster.client import ApiError
from tests.cluster.views import aside, load, until, viewing
from tests.waiting import PATIENCE, wait_for

GPU = "nvidia.com/gpu"
GI = 2**30


class Asker:
    """A hub in one namespace, as far as admission is concerned.

    The nodes of its accelerator have the label ``pool`` with the name of its namespace.

    Attributes:
        view: The live view.
        inner: Judges pods as they are sent.
        preflight: What it asks.
    """

    def __init__(
        self, cluster: LocalCluster, view: ClusterView, client: Client, namespace: str
    ) -> None:
        self.view = view
        self.inner = Preflight(view)
        self.preflight = AdmittedPreflight(self.inner)
        self._cluster = cluster
        self._client = client
        self._dry_run = DryRun(client, 10)
        self.namespace = namespace
        self.offers = Offers.parse(
            accelerators={"a": {"node_selector": {"pool": namespace}, "counts": [1, 2, 4]}},
            memory_choices=["1Gi", "2Gi", "4Gi"],
        )

    def patience(self, seconds: float) -> None:
        """How long a dry run may take from now on."""
        self._dry_run = DryRun(self._client, seconds)

    def ask(self, gpus: int = 1, memory: int = GI, **spec: object) -> Ask:
        """A server of so many GPUs; *spec* is added to its pod's."""
        accelerator = self.offers.accelerators["a"] if gpus else None
        grant = Grant(accelerator, gpus, memory=memory)

        def variant(request: GPURequest) -> tuple[Grant, dict[str, Any]]:
            sizes = {size.text: size.bytes for size in self.offers.memory_choices}
            other = self.offers.accelerators.get(request.accelerator or "")
            granted = Grant(other, request.gpus, memory=sizes[request.memory or "1Gi"])
            return granted, self._pod(granted, spec)

        return Ask(
            self.namespace,
            "server",
            self._pod(grant, spec),
            grant,
            offers=self.offers,
            variant=variant,
            admit=partial(self._dry_run.admit, self.namespace),
        )

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

    async def until(self, ask: Ask, is_true: Callable[[Decision], bool]) -> Decision:
        """Ask until this is true of the answer: the API server hears of a new rule by a watch.

        Raises:
            TimeoutError: It never is; the text is the last answer.
        """
        last: Decision | None = None
        try:
            async with asyncio.timeout(PATIENCE):
                while not is_true(last := await self.preflight.examine(ask)):
                    await self.view.changed(0.05)
        except TimeoutError:
            raise TimeoutError(f"the last answer was {last}") from None
        assert last is not None
        return last

    async def until_taken(self, ask: Ask) -> None:
        """Create the pod as soon as the API server takes it, and wait for it to be bound."""

        def create() -> str | None:
            with suppress(ApiError):
                return self._scheduled(ask)
            return None

        assert await aside(lambda: wait_for(create))
        await until(self.view, lambda: self.is_bound(ask))

    def is_bound(self, ask: Ask) -> bool:
        """Whether the view shows that the pod has a node."""
        return "/".join(ask.key) in self.view.state.pods

    async def scheduled(self, ask: Ask) -> str:
        """Create the pod, and return the node that the scheduler finds; "" where there is none.

        Raises:
            ApiError: The API server does not take it.
        """
        return await aside(lambda: self._scheduled(ask))

    async def refused(self, ask: Ask) -> ApiError:
        """Create the pod, and return what the API server says against it."""
        try:
            await self.scheduled(ask)
        except ApiError as error:
            return error
        raise AssertionError("the API server has taken the pod")

    def _scheduled(self, ask: Ask) -> str:
        pods = f"/api/v1/namespaces/{self.namespace}/pods"
        self._cluster.api.create(pods, dict(ask.pod))
        path = f"{pods}/{ask.name}"
        made = wait_for(lambda: _decided(self._cluster.api.get(path)))
        node: str = made["spec"].get("nodeName", "")
        return node

    def with_spec(self, ask: Ask, **spec: object) -> Ask:
        """The same with other fields of the pod's spec."""
        old = ask.pod["spec"]
        assert isinstance(old, dict)
        return replace(ask, pod={**ask.pod, "spec": {**old, **spec}})

    def named(self, ask: Ask, name: str) -> Ask:
        """The same under another name."""
        return replace(ask, name=name, pod={**ask.pod, "metadata": {"name": name}})


def _decided(pod: dict[str, Any]) -> dict[str, Any] | None:
    conditions = {it["type"]: it["status"] for it in pod["status"].get("conditions", ())}
    return pod if pod["spec"].get("nodeName") or conditions.get("PodScheduled") == "False" else None


@asynccontextmanager
async def asking(cluster: LocalCluster, namespace: str) -> AsyncIterator[Asker]:
    """Somebody who asks in this namespace."""
    client = Client(partial(load, cluster.kubeconfig))
    async with viewing(cluster.kubeconfig) as view:
        assert await view.first_list(PATIENCE)
        yield Asker(cluster, view, client, namespace)
    await client.close()
