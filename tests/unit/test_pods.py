"""Nothing of a pod is lost between KubeSpawner's models and the plain objects of the rest."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from kubernetes_asyncio import client
from kubespawner.objects import make_pod

from gpuspawner import pods


@pytest.fixture
async def api() -> AsyncIterator[client.CoreV1Api]:
    async with client.ApiClient(client.Configuration()) as connection:
        yield client.CoreV1Api(connection)


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


def test_a_stock_pod_comes_back_as_it_was() -> None:
    written = pods.plain(stock_pod())

    assert pods.plain(pods.model(written)) == written


def test_a_hook_finds_the_models_that_it_knows() -> None:
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
def test_what_the_client_does_not_know_is_kept(more: dict[str, Any]) -> None:
    written = pods.plain(stock_pod(**more))

    assert pods.plain(pods.model(written)) == written


async def test_a_pod_that_no_api_server_can_be_asked_about_stays_as_it_is(
    api: client.CoreV1Api,
) -> None:
    api.api_client.configuration.host = "http://127.0.0.1:9"
    pod = stock_pod()

    assert await pods.admitted(api, "default", pod, seconds=5) == pods.plain(pod)
