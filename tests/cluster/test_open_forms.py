"""The load of open forms on the API server, by its own count of requests."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count

import pytest

from gpuspawner.cluster.client import Client
from gpuspawner.preflight.decision import Refuse
from gpuspawner.preflight.dry_runs import DryRun, DryRuns, TooManyDryRunsError
from localcluster import LocalCluster
from tests.cluster.admitting import GI, Asker, add_node
from tests.cluster.views import load
from tests.fixtures.cluster import AddNodes
from tests.servers.webhooks import Object, Webhooks, configured, patched

FORMS = 200
EVERY = 10.0  # seconds, as in form.js
SECONDS = 20.0
_DRY_RUNS = re.compile(r'^apiserver_request_total\{[^}]*dry_run="All"[^}]*\} (\d+)$', re.MULTILINE)


@pytest.fixture
def cluster(admitting_cluster: LocalCluster) -> LocalCluster:
    admitting_cluster.check()
    return admitting_cluster


def dry_runs(cluster: LocalCluster) -> int:
    """Return how many dry runs the API server has answered since its start."""
    return sum(map(int, _DRY_RUNS.findall(cluster.kubectl("get", "--raw", "/metrics"))))


class Forms:
    """Users with an open form whose selection doesn't fit.

    Attributes:
        told: How many answers they got.
        later: How many answers said to ask later.
    """

    def __init__(self, asker: Asker, runs: DryRuns) -> None:
        self._asker = asker
        self._runs = runs
        self.told = 0
        self.later = 0

    async def ask(self, number: int) -> None:
        person = f"person-{number % FORMS}"
        asker, preflight = self._asker, self._asker.preflight
        proposal = asker.named(asker.proposal(2, 4 * GI), person)
        admission = self._runs.for_form(person)
        try:
            decision = await preflight.foretell(proposal, admission)
        except TooManyDryRunsError:
            self.later += 1
        else:
            assert isinstance(decision, Refuse)
            await preflight.with_alternatives(decision, proposal, asker, admission)
            self.told += 1

    async def stay_open(self, seconds: float) -> None:
        """Ask for each user every `EVERY` seconds, evenly spread."""
        loop, asked = asyncio.get_running_loop(), []
        over, begin = asyncio.Event(), loop.time()
        for number in range(round(seconds * FORMS / EVERY)):
            at = begin + number * EVERY / FORMS
            loop.call_at(at, lambda n=number: asked.append(loop.create_task(self.ask(n))))
        loop.call_at(begin + seconds, over.set)
        await over.wait()
        await asyncio.gather(*asked)


@contextmanager
def adding_a_toleration(cluster: LocalCluster, asker: Asker, webhooks: Webhooks) -> Iterator[None]:
    """A webhook that changes every pod a little, so that each needs a dry run."""
    key = count()

    def tolerate(pod: Object) -> Object:
        mine = {"key": f"example.com/{next(key)}", "operator": "Exists"}
        tolerations = [*pod["spec"]["tolerations"], mine]
        return patched({"op": "replace", "path": "/spec/tolerations", "value": tolerations})

    webhooks.answers["adding"] = tolerate
    with configured(cluster, webhooks.configuration(asker.namespace, "adding", "Mutating")):
        yield


@pytest.mark.nightly("it keeps forms open for 20 s, and asks the clock")
async def test_two_hundred_open_forms_cost_less_than_five_requests_a_second(
    cluster: LocalCluster, asker: Asker, webhooks: Webhooks, add_nodes: AddNodes
) -> None:
    await add_node(asker, add_nodes, memory="3Gi")
    client = Client(partial(load, cluster.kubeconfig))
    forms = Forms(asker, DryRuns(DryRun(client, 10)))

    with adding_a_toleration(cluster, asker, webhooks):
        before, began = dry_runs(cluster), time.monotonic()
        await forms.stay_open(SECONDS)
        rate = (dry_runs(cluster) - before) / (time.monotonic() - began)
    await client.close()

    print(f"{rate:.2f} dry runs a second; {forms.told} answers, {forms.later} told to ask later")
    assert 1 < rate < 5
    assert forms.told + forms.later == SECONDS * FORMS / EVERY
