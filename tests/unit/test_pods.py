"""Converting a pod between KubeSpawner's models and plain objects loses nothing."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes_asyncio import client
from kubespawner.objects import make_pod

from gpuspawner import pods


def stock_pod(**more: Any) -> Any:
    return make_pod(
        name="jupyter-alice",
        cmd=["jupyterhub-singleuser"],
        port=8888,
        image="quay.io/jupyter/base-notebook",
        image_pull_policy="IfNotPresent",
        mem_limit="1Gi",
        env={"A": "b", "EMPTY": None},
        volumes=[{"name": "home", "persistentVolumeClaim": {"claimName": "claim-alice"}}],
        volume_mounts=[{"name": "home", "mountPath": "/home/jovyan"}],
        node_affinity_required=[{"matchExpressions": [{"key": "pool", "operator": "Exists"}]}],
        tolerations=[{"key": "hub.jupyter.org/dedicated", "operator": "Exists"}],
        **more,
    )


def test_a_stock_pod_survives_the_round_trip() -> None:
    written = pods.plain(stock_pod())

    assert pods.plain(pods.model(written)) == written


def test_a_hook_gets_kubespawners_models() -> None:
    pod = pods.model(pods.plain(stock_pod()))

    assert pod.metadata.name == "jupyter-alice"
    assert pod.spec.containers[0].resources.limits == {"memory": "1Gi"}
    terms = pod.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
    assert terms.node_selector_terms[0].match_expressions[0].operator == "Exists"


@pytest.mark.parametrize(
    "more",
    [
        {"extra_pod_config": {"dnsConfig": {"options": [{"name": "ndots", "newer": "field"}]}}},
        {"extra_containers": [{"name": "side", "resources": {"someday": {"a": [1, None]}}}]},
        {"init_containers": [client.V1Container(name="first", image="first")]},
        {"extra_pod_config": {"tolerations": [{"operator": "Exists", "comparison": "Gt"}]}},
        {"extra_pod_config": {"hostAliases": [{"hostnames": "no list"}]}},
    ],
    ids=["newer field", "unknown field", "model in a list", "unknown in a list", "invalid"],
)
def test_fields_that_the_client_does_not_know_are_kept(more: dict[str, Any]) -> None:
    written = pods.plain(stock_pod(**more))

    assert pods.plain(pods.model(written)) == written
