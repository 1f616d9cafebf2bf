"""The preflight with webhooks and policies: their changes, their refusals, their absence."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gpuspawner.preflight.decision import Decision, Reason, Refuse, Start
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.preflight.rejection import Denied, Of, WebhookFailed, read
from localcluster import LocalCluster
from tests.cluster.admitting import GPU, Asker, add_node
from tests.cluster.views import until
from tests.fixtures.cluster import AddNodes
from tests.servers.webhooks import API, Object, Webhooks, configured, patched, stored_before_v1

HOSTILE = "take images from <b>quay.io</b>\nalone"


@pytest.fixture
def cluster(admitting_cluster: LocalCluster) -> LocalCluster:
    admitting_cluster.check()
    return admitting_cluster


@pytest.fixture(autouse=True)
async def node(asker: Asker, add_nodes: AddNodes) -> str:
    """A node of two GPUs."""
    return await add_node(asker, add_nodes, gpus=2)


def is_refusal(decision: Decision) -> bool:
    return isinstance(decision, Refuse)


async def test_the_preflight_judges_what_a_webhook_adds(
    cluster: LocalCluster, asker: Asker, webhooks: Webhooks
) -> None:
    selector = {"pool": asker.namespace, "disk": "fast"}
    change = {"op": "add", "path": "/spec/nodeSelector", "value": selector}
    webhooks.answers["mutating"] = lambda _: patched(change)

    with configured(cluster, webhooks.configuration(asker.namespace, "mutating", "Mutating")):
        decision = await asker.until(asker.proposal(), is_refusal)

        assert isinstance(asker.preflight.decider.check(asker.proposal()), Start)
        assert isinstance(decision, Refuse)
        assert decision.rejection is None
        assert await asker.scheduled(asker.proposal()) == ""


async def test_a_webhook_that_lowers_memory_makes_the_pod_fit(
    cluster: LocalCluster, asker: Asker, webhooks: Webhooks, node: str
) -> None:
    proposal = asker.proposal(memory=9 * 2**30)
    resources = {"limits": {"memory": "1Gi", GPU: "1"}}
    path = "/spec/containers/0/resources"
    webhooks.answers["shrinking"] = lambda _: patched(
        {"op": "replace", "path": path, "value": resources}
    )

    with configured(cluster, webhooks.configuration(asker.namespace, "shrinking", "Mutating")):
        await asker.until(proposal, lambda decision: isinstance(decision, Start))

        assert isinstance(asker.preflight.decider.check(proposal), Refuse)
        assert isinstance(await asker.preflight.begin(proposal, asker.admission), Start)
        assert await asker.scheduled(proposal) == node


async def test_a_webhook_that_adds_a_toleration_for_one_user_helps_only_that_user(
    cluster: LocalCluster, asker: Asker, webhooks: Webhooks, node: str
) -> None:
    taint = {"key": "reserved", "value": "for-ann", "effect": "NoSchedule"}
    cluster.api.patch(f"/api/v1/nodes/{node}", {"spec": {"taints": [taint]}})
    await until(asker.view, lambda: bool(asker.view.state.nodes[node].taints))
    ann, bob = (asker.named(asker.proposal(), name) for name in ("ann", "bob"))

    def for_ann_alone(pod: Object) -> Object:
        tolerations = [*pod["spec"]["tolerations"], {"operator": "Exists"}]
        change = {"op": "replace", "path": "/spec/tolerations", "value": tolerations}
        return patched(change) if pod["metadata"]["generateName"] == "ann-" else {}

    webhooks.answers["one"] = for_ann_alone
    with configured(cluster, webhooks.configuration(asker.namespace, "one", "Mutating")):
        await asker.until(ann, lambda decision: isinstance(decision, Start))
        other = Preflight(asker.view)
        assert isinstance(await other.examine(bob, asker.admission), Refuse)

        assert isinstance(await other.begin(ann, asker.admission), Start)
        assert isinstance(await other.begin(bob, asker.admission), Refuse)


async def test_a_webhooks_refusal_is_quoted(
    cluster: LocalCluster, asker: Asker, webhooks: Webhooks
) -> None:
    webhooks.answers["refusing"] = lambda _: _no(HOSTILE)

    with configured(cluster, webhooks.configuration(asker.namespace, "refusing")):
        decision = await asker.until(asker.proposal(2), is_refusal)

        assert isinstance(decision, Refuse)
        assert decision.reason is Reason.NOT_ADMITTED
        assert decision.rejection is not None
        assert decision.rejection.cause == Denied("take images from <b>quay.io</b> alone")
        assert decision.alternatives == ()
        assert (await asker.refused(asker.proposal(2))).status == 403


async def test_the_nearest_alternative_that_a_webhook_accepts_is_offered(
    cluster: LocalCluster, asker: Asker, webhooks: Webhooks
) -> None:
    def at_most_one(pod: Object) -> Object:
        limits = pod["spec"]["containers"][0]["resources"]["limits"]
        return {} if limits.get(GPU, "0") in {"0", "1"} else _no("one GPU each")

    webhooks.answers["counting"] = at_most_one

    with configured(cluster, webhooks.configuration(asker.namespace, "counting")):
        decision = await asker.until(asker.proposal(2), is_refusal)

    assert isinstance(decision, Refuse)
    assert [alternative.grant.gpus for alternative in decision.alternatives] == [1, 0]


async def test_a_policys_refusal_is_quoted(cluster: LocalCluster, asker: Asker) -> None:
    with _policy(cluster, asker.namespace, "object.spec.containers.size() > 1", "two or more"):
        decision = await asker.until(asker.proposal(), is_refusal)

        assert isinstance(decision, Refuse)
        assert decision.rejection is not None
        assert decision.rejection.cause == Denied("two or more")
        assert (await asker.refused(asker.proposal())).status == 422


async def test_a_webhook_without_dry_runs_is_skipped_and_logged_once(
    cluster: LocalCluster,
    asker: Asker,
    webhooks: Webhooks,
    node: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    webhooks.answers["old"] = lambda _: {}

    with stored_before_v1(cluster, webhooks.configuration(asker.namespace, "old")):
        await asker.until(asker.proposal(), lambda _: "does not support dry run" in caplog.text)

        assert isinstance(await asker.examine(asker.proposal(2)), Start)
        assert isinstance(await asker.examine(asker.proposal(4)), Refuse)
        assert await asker.scheduled(asker.proposal()) == node
    assert caplog.text.count("A dry run failed") == 1


async def test_a_webhook_that_is_down_has_no_effect_before_the_pod_is_created(
    cluster: LocalCluster, asker: Asker, webhooks: Webhooks, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    configuration = webhooks.configuration(asker.namespace, "away")
    configuration["webhooks"][0]["clientConfig"]["url"] = "https://127.0.0.1:9/away"

    with configured(cluster, configuration):
        await asker.until(asker.proposal(), lambda _: "failed calling webhook" in caplog.text)

        assert isinstance(await asker.examine(asker.proposal()), Start)
        error = await asker.refused(asker.proposal())

    rejection = read(error.status, {"message": str(error)}, Of.POD)
    assert rejection is not None
    assert rejection.cause == WebhookFailed("away.example.com")


async def test_a_slow_webhook_does_not_delay_the_answer(
    cluster: LocalCluster, asker: Asker, webhooks: Webhooks, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    webhooks.answers["slow"] = lambda _: {"allowed": webhooks.released.wait(60)}
    asker.patience(0.5)

    with configured(cluster, webhooks.configuration(asker.namespace, "slow")):
        await asker.until(asker.proposal(), lambda _: "TimeoutError" in caplog.text)

        assert isinstance(await asker.examine(asker.proposal(2)), Start)
        assert isinstance(await asker.examine(asker.proposal(4)), Refuse)


def _no(message: str) -> Object:
    return {"allowed": False, "status": {"code": 403, "message": message}}


@contextmanager
def _policy(cluster: LocalCluster, namespace: str, expression: str, message: str) -> Iterator[None]:
    """Return a ValidatingAdmissionPolicy for new pods of one namespace."""
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
    }
    policy = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": expression, "message": message}],
    }
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    binding = {"policyName": namespace, "validationActions": ["Deny"], "matchResources": here}
    specs = {"validatingadmissionpolicies": policy, "validatingadmissionpolicybindings": binding}
    for kind, spec in specs.items():
        cluster.api.create(f"{API}/{kind}", {"metadata": {"name": namespace}, "spec": spec})
    try:
        yield
    finally:
        for kind in specs:
            cluster.api.delete(f"{API}/{kind}/{namespace}")
