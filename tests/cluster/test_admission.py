"""The preflight judges pods as admission changes them, and explains admission's refusals.

Each test sets a rule in a namespace of a real API server, and compares the preflight's decision
with what that API server and its scheduler then do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gpuspawner.preflight.decision import (
    AfterPreemption,
    Decision,
    Reason,
    Refuse,
    Start,
    Wait,
)
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.preflight.rejection import (
    Bound,
    Breach,
    Insecure,
    Missing,
    OutOfRange,
    OverQuota,
    QuotaDemands,
    RejectionCause,
    Unexplained,
    Use,
)
from gpuspawner.scaling.pools import Pools
from localcluster import LocalCluster
from localcluster.fleet import Taint
from tests.cluster.admitting import GI, GPU, Asker, add_node
from tests.cluster.views import until
from tests.fixtures.cluster import AddNodes

RUNTIMES = "/apis/node.k8s.io/v1/runtimeclasses"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
LEVEL = "pod-security.kubernetes.io/enforce"
SELECTOR = "scheduler.alpha.kubernetes.io/node-selector"
QUOTA = f"requests.{GPU}"


@pytest.fixture
def cluster(admitting_cluster: LocalCluster) -> LocalCluster:
    admitting_cluster.check()
    return admitting_cluster


class Rules:
    """Creates what an administrator sets in a test's namespace and in the whole cluster."""

    def __init__(self, cluster: LocalCluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = f"/api/v1/namespaces/{namespace}"
        self._name = namespace
        self._cluster_wide: list[str] = []

    def quota(self, hard: dict[str, str]) -> None:
        self._add("resourcequotas", {"hard": hard})

    def limits(self, of: str, **limit: dict[str, str]) -> None:
        self._add("limitranges", {"limits": [{"type": of, **limit}]})

    def label(self, **labels: str) -> None:
        self._cluster.api.patch(self._namespace, {"metadata": {"labels": labels}})

    def annotate(self, **annotations: str) -> None:
        self._cluster.api.patch(self._namespace, {"metadata": {"annotations": annotations}})

    def for_all(self, path: str, **fields: object) -> str:
        """Create a cluster-wide object with a unique name; it is deleted after the test."""
        self._cluster.api.create(path, {"metadata": {"name": self._name}, **fields})
        self._cluster_wide.append(f"{path}/{self._name}")
        return self._name

    def clear(self) -> None:
        for path in self._cluster_wide:
            self._cluster.api.delete(path)

    def _add(self, kind: str, spec: dict[str, Any]) -> None:
        path = f"{self._namespace}/{kind}"
        self._cluster.api.create(path, {"metadata": {"name": "the-rule"}, "spec": spec})


@pytest.fixture
def rules(cluster: LocalCluster, namespace: str) -> Iterator[Rules]:
    rules = Rules(cluster, namespace)
    yield rules
    rules.clear()


@pytest.fixture
async def one_node(asker: Asker, add_nodes: AddNodes) -> str:
    """Add a node of 4 GPUs and 8 GiB, and wait until the view and the scheduler know it."""
    return await add_node(asker, add_nodes)


async def refusal(asker: Asker, proposal: Proposal) -> Refuse:
    """Return the refusal by this rule, once the rule has reached the API server."""
    decision = await asker.until(proposal, lambda decision: isinstance(decision, Refuse))
    assert isinstance(decision, Refuse)
    return decision


async def refusal_by(asker: Asker, proposal: Proposal, rule: RejectionCause) -> Refuse:
    """Return the refusal by exactly this rule, once the API server knows it."""

    def is_by_the_rule(decision: Decision) -> bool:
        rejection = decision.rejection if isinstance(decision, Refuse) else None
        return rejection is not None and rejection.cause == rule

    decision = await asker.until(proposal, is_by_the_rule)
    assert isinstance(decision, Refuse)
    return decision


def cause(decision: Decision) -> RejectionCause:
    assert isinstance(decision, Refuse)
    assert decision.rejection is not None
    return decision.rejection.cause


def counts(decision: Refuse) -> list[int]:
    """Return the GPUs of the alternatives."""
    return [alternative.grant.gpus for alternative in decision.alternatives]


# Rules that refuse


async def test_a_quota_refuses_with_its_figures_and_offers_what_it_leaves(
    asker: Asker, one_node: str, rules: Rules
) -> None:
    rules.quota({QUOTA: "3"})
    # A pod that the API server accepts before it knows the quota may never be counted.
    await refusal_by(asker, asker.proposal(4), OverQuota((Use(QUOTA, 4, used=0, limit=3),)))
    await asker.until_taken(asker.named(asker.proposal(1), "other"))

    over = OverQuota((Use(QUOTA, asked=4, used=1, limit=3),))
    decision = await refusal_by(asker, asker.proposal(4), over)

    assert decision.reason is Reason.QUOTA
    assert counts(decision) == [2, 0]
    assert (await asker.refused(asker.proposal(4))).status == 403
    assert await asker.scheduled(asker.proposal(2)) == one_node


@pytest.mark.usefixtures("one_node")
async def test_a_quota_that_requires_a_limit_names_the_resource(asker: Asker, rules: Rules) -> None:
    rules.quota({"limits.cpu": "4"})

    decision = await refusal(asker, asker.proposal())

    assert cause(decision) == QuotaDemands(("limits.cpu",))
    assert decision.alternatives == ()


@pytest.mark.usefixtures("one_node")
async def test_a_limit_range_refuses_with_its_figures_and_offers_less(
    asker: Asker, rules: Rules
) -> None:
    rules.limits("Container", max={"memory": "2Gi"})

    decision = await refusal(asker, asker.proposal(memory=4 * GI))

    assert decision.reason is Reason.LIMIT_RANGE
    assert cause(decision) == OutOfRange((Breach("memory", Bound.MAXIMUM, 2 * GI, 4 * GI),))
    assert [it.grant.memory for it in decision.alternatives] == [2 * GI]
    assert (await asker.refused(asker.proposal(memory=4 * GI))).status == 403


@pytest.mark.usefixtures("one_node")
async def test_a_limit_range_of_pods_also_has_a_minimum(asker: Asker, rules: Rules) -> None:
    rules.limits("Pod", min={"memory": "2Gi"})

    decision = await refusal(asker, asker.proposal(memory=GI))

    assert cause(decision) == OutOfRange((Breach("memory", Bound.MINIMUM, 2 * GI, GI),))
    assert decision.alternatives == ()


@pytest.mark.usefixtures("one_node")
async def test_pod_security_refuses_every_choice(asker: Asker, rules: Rules) -> None:
    rules.label(**{LEVEL: "restricted"})

    decision = await refusal(asker, asker.proposal())

    assert decision.reason is Reason.NOT_ADMITTED
    assert cause(decision) == Insecure("restricted")
    assert decision.alternatives == ()
    assert (await asker.refused(asker.proposal())).status == 403


@pytest.mark.parametrize(
    ("spec", "missing"),
    [
        ({"runtimeClassName": "nvidia"}, Missing("RuntimeClass", "nvidia")),
        ({"priorityClassName": "high"}, Missing("PriorityClass", "high")),
        ({"priority": 5}, Unexplained()),
        ({"restartPolicy": "Sometimes"}, Unexplained()),
    ],
    ids=["runtime class", "priority class", "priority", "invalid"],
)
@pytest.mark.usefixtures("one_node")
async def test_a_pod_that_the_api_server_would_refuse_is_refused_before_it_is_created(
    asker: Asker, spec: dict[str, Any], missing: RejectionCause
) -> None:
    decision = await asker.examine(asker.proposal(**spec))

    assert cause(decision) == missing
    assert (await asker.refused(asker.proposal(**spec))).status in {403, 422}


# Rules that change the pod


@pytest.mark.usefixtures("one_node")
async def test_a_limit_ranges_default_counts_as_requested(asker: Asker, rules: Rules) -> None:
    proposal = asker.proposal(initContainers=[{"name": "first", "image": "x"}])
    rules.limits("Container", default={"memory": "9Gi"})

    decision = await refusal(asker, proposal)

    assert isinstance(asker.preflight.decider.check(proposal), Start)
    assert decision.shortage is not None
    assert (decision.shortage.resource, decision.shortage.asked) == ("memory", 9 * GI)
    assert await asker.scheduled(proposal) == ""


async def test_a_limit_ranges_maximum_of_gpus_is_the_default_of_servers_without_gpus(
    asker: Asker, rules: Rules
) -> None:
    rules.limits("Container", max={GPU: "1"})

    decision = await refusal(asker, asker.proposal(gpus=0))

    assert isinstance(decision, Refuse)
    assert await asker.scheduled(asker.proposal(gpus=0)) == ""


@pytest.fixture
def kata(rules: Rules) -> str:
    """A runtime class with an overhead of 6 GiB, for nodes that only its pods tolerate."""
    return rules.for_all(
        RUNTIMES,
        handler="kata",
        overhead={"podFixed": {"memory": "6Gi"}},
        scheduling={
            "nodeSelector": {"runtime": "kata"},
            "tolerations": [{"key": "kata", "operator": "Exists", "effect": "NoSchedule"}],
        },
    )


async def test_a_runtime_class_adds_its_tolerations_selector_and_overhead(
    asker: Asker, add_nodes: AddNodes, kata: str
) -> None:
    name = await add_node(asker, add_nodes, Taint("kata", "", "NoSchedule"), runtime="kata")
    small = asker.proposal(1, GI, runtimeClassName=kata)
    large = asker.proposal(1, 4 * GI, runtimeClassName=kata)

    assert isinstance(asker.preflight.decider.check(small), Refuse)
    assert isinstance(await asker.until(small, is_start), Start)
    refused = await asker.examine(large)
    assert isinstance(refused, Refuse)
    assert refused.shortage is not None
    assert refused.shortage.asked == 10 * GI
    assert await asker.scheduled(asker.named(large, "large")) == ""
    assert await asker.scheduled(small) == name


@pytest.mark.usefixtures("one_node")
async def test_a_runtime_class_whose_selector_matches_no_node_is_refused(
    asker: Asker, kata: str
) -> None:
    proposal = asker.proposal(runtimeClassName=kata)

    decision = await asker.until(proposal, lambda it: isinstance(it, Refuse) and not it.rejection)

    assert isinstance(asker.preflight.decider.check(proposal), Start)
    assert isinstance(decision, Refuse)
    assert await asker.scheduled(proposal) == ""


async def test_a_priority_class_preempts_pods(asker: Asker, one_node: str, rules: Rules) -> None:
    high = rules.for_all(PRIORITIES, value=1000)
    assert await asker.scheduled(asker.named(asker.proposal(4), "low")) == one_node
    await until(asker.view, lambda: asker.view.state.nodes[one_node].pods)

    decision = await asker.until(asker.proposal(4, priorityClassName=high), is_start)

    assert decision == Start(asker.proposal(4).grant, (AfterPreemption(),))
    assert isinstance(await asker.examine(asker.proposal(4)), Refuse)
    proposal = asker.proposal(4, priorityClassName=high)
    await asker.scheduled(proposal)
    await until(asker.view, lambda: asker.is_bound(proposal))


async def test_added_tolerations_of_extended_resources_make_the_pod_fit(
    asker: Asker, add_nodes: AddNodes
) -> None:
    name = await add_node(asker, add_nodes, Taint(GPU, "present", "NoSchedule"))
    proposal = asker.proposal()

    assert isinstance(asker.preflight.decider.check(proposal), Refuse)
    assert isinstance(await asker.examine(proposal), Start)
    assert isinstance(await asker.preflight.begin(proposal, asker.admission), Start)
    assert isinstance(await asker.preflight.confirm(proposal, asker.admission), Start)
    assert await asker.scheduled(proposal) == name


async def test_nobody_waits_for_a_node_if_an_added_toleration_opens_one_that_has_room(
    asker: Asker, add_nodes: AddNodes
) -> None:
    name = await add_node(asker, add_nodes, Taint(GPU, "present", "NoSchedule"))
    proposal, view = asker.proposal(), asker.view
    pools = Pools(view.state, view.autoscalers, "always")
    growing = Preflight(view, pools=pools)

    assert isinstance(growing.decider.check(proposal), Wait)
    assert isinstance(await growing.foretell(proposal, asker.admission), Start)
    assert isinstance(await growing.begin(proposal, asker.admission), Start)
    assert await asker.scheduled(proposal) == name


@pytest.mark.usefixtures("one_node")
async def test_a_namespaces_node_selector_applies_to_the_pod(asker: Asker, rules: Rules) -> None:
    rules.annotate(**{SELECTOR: "pool=elsewhere"})

    decision = await refusal(asker, asker.proposal(gpus=0))

    assert decision.rejection is None
    assert await asker.scheduled(asker.proposal(gpus=0)) == ""


# Names


async def test_an_older_pod_of_the_same_name_does_no_harm(asker: Asker, one_node: str) -> None:
    assert await asker.scheduled(asker.proposal()) == one_node

    assert isinstance(await asker.examine(asker.proposal()), Start)


@pytest.mark.usefixtures("one_node")
async def test_a_missing_namespace_does_not_refuse_the_start(asker: Asker) -> None:
    asker.namespace = f"{asker.namespace}-alice"
    proposal = asker.with_spec(asker.proposal(), nodeSelector={})

    assert isinstance(await asker.examine(proposal), Start)


def is_start(decision: Decision) -> bool:
    return isinstance(decision, Start)
