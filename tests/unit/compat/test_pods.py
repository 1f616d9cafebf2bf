"""Changing a pod of KubeSpawner's loses nothing, and leaves hooks the types that it has."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes_asyncio import client
from kubespawner.objects import make_pod

from gpuspawner.compat import pods
from gpuspawner.kube.objects import Manifest
from gpuspawner.offers import manifest
from gpuspawner.offers.gpu_check import with_gpu_check
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.manifest import with_last_words
from gpuspawner.offers.node_affinity import off, rather_off
from gpuspawner.offers.offers import Offers
from gpuspawner.reservations.granted import Granted, mark
from gpuspawner.start.kueue_queue import queued
from tests.stock.looking import look

HOME = {"name": "home", "persistentVolumeClaim": {"claimName": "claim-alice"}}
SECRET = {"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
A100 = Offers.parse(
    accelerators={
        "a100": {
            "node_selector": {"gpu": "a100"},
            "node_affinity": [{"matchExpressions": [{"key": "pool", "operator": "Exists"}]}],
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
            "environment": {"NCCL_DEBUG": "INFO"},
            "volumes": [{"name": "models", "hostPath": {"path": "/srv/models"}}],
            "volume_mounts": [{"name": "models", "mountPath": "/models", "readOnly": True}],
            "runtime_class": "nvidia",
            "shared_memory": "8Gi",
        }
    }
).accelerators["a100"]


def stock_pod(**more: Any) -> Any:
    settings: dict[str, Any] = {
        "image_pull_policy": "IfNotPresent",
        "mem_limit": "1Gi",
        "env": {"A": "b", "EMPTY": None, "TOKEN": dict(SECRET)},
        "volumes": [HOME],
        "volume_mounts": [{"name": "home", "mountPath": "/home/jovyan"}],
        "node_affinity_required": [{"matchExpressions": [{"key": "pool", "operator": "Exists"}]}],
        "tolerations": [{"key": "hub.jupyter.org/dedicated", "operator": "Exists"}],
        "pod_security_context": {"seccompProfile": {"type": "RuntimeDefault"}},
        "container_security_context": {"capabilities": {"drop": ["ALL"]}},
    }
    return make_pod(
        name="jupyter-alice",
        cmd=["jupyterhub-singleuser"],
        port=8888,
        image="quay.io/jupyter/base-notebook",
        **{**settings, **more},
    )


def changed(pod: Any, to: Manifest) -> Any:
    return pods.changed(pod, pods.plain(pod), to)


def granted(pod: Manifest) -> Manifest:
    """Everything that a start may write into its pod before an administrator's hook sees it."""
    made = manifest.apply(pod, Grant(A100, 2, memory=2**31))
    made = queued(off(made, ["node-1"]), "queue")
    return mark(with_last_words(with_gpu_check(made)), Granted(policies=("course",), lifetime=3600))


def sent_elsewhere(pod: Manifest) -> Manifest:
    """What the last gate may write into the pod that a hook has made."""
    return mark(rather_off(pod, ["node-1", "node-2"]), Granted(policies=("course",), lifetime=60))


def without_gpu(pod: Manifest) -> Manifest:
    return manifest.apply(pod, Grant())


CHANGES = [granted, sent_elsewhere, without_gpu, with_last_words]


class OfAnAdministrator(dict[str, Any]):
    """Plain objects may be of any class that JSON can hold."""


def test_a_pod_is_plain_as_the_client_sends_it() -> None:
    pod, when = stock_pod(), datetime(2026, 1, 2, tzinfo=UTC)
    pod.metadata.creation_timestamp, pod.metadata.owner_references = when, ({"uid": "1"},)
    pod.spec.dns_config = OfAnAdministrator(options=[client.V1PodDNSConfigOption(name="ndots")])
    unconnected = object.__new__(client.ApiClient)  # another one would open connections

    assert pods.plain(pod) == unconnected.sanitize_for_serialization(pod)


def test_a_hook_gets_kubespawners_models() -> None:
    pod = changed(stock_pod(), granted(pods.plain(stock_pod())))

    assert pod.metadata.name == "jupyter-alice"
    limits = pod.spec.containers[0].resources.limits
    assert limits == {"memory": "2Gi", "nvidia.com/gpu": "2"}
    terms = pod.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
    assert terms.node_selector_terms[0].match_expressions[0]["operator"] == "Exists"


def test_a_hook_gets_as_plain_objects_what_kubespawner_leaves_so() -> None:
    pod = changed(stock_pod(), granted(pods.plain(stock_pod())))

    [server], volumes = pod.spec.containers, {it.name: it for it in pod.spec.volumes}
    environment = {it.name: it for it in server.env}
    assert environment["TOKEN"].value_from["secretKeyRef"]["key"] == "k"
    assert environment["NCCL_DEBUG"].value == "INFO"
    assert volumes["home"].persistent_volume_claim["claimName"] == "claim-alice"
    assert volumes["models"].host_path["path"] == "/srv/models"
    assert pod.spec.security_context["seccompProfile"]["type"] == "RuntimeDefault"
    assert server.security_context["capabilities"]["drop"] == ["ALL"]
    assert pod.spec.init_containers[0].security_context["capabilities"]["drop"] == ["ALL"]


def test_what_is_added_beside_plain_objects_is_plain_too() -> None:
    settings = {
        "extra_pod_config": {"affinity": {"nodeAffinity": {}}, "volumes": [HOME]},
        "extra_container_config": {"env": [{"name": "B", **SECRET}], "resources": {}},
    }
    pod = changed(stock_pod(**settings), granted(pods.plain(stock_pod(**settings))))

    [server], spec = pod.spec.containers, pod.spec
    assert {it["name"] for it in server.env} >= {"B", "NCCL_DEBUG"}
    assert server.resources["limits"]["nvidia.com/gpu"] == "2"
    assert {it["name"] for it in spec.volumes} >= {"home", "models"}
    assert "requiredDuringSchedulingIgnoredDuringExecution" in spec.affinity.get("nodeAffinity")


def test_nothing_is_written_into_the_configuration() -> None:
    selector, twice = {"disk": "ssd"}, {"key": "x", "operator": "Exists"}
    pod = stock_pod(node_selector=selector, tolerations=[twice, twice])
    before = pods.plain(pod)

    first = changed(pod, granted(pods.plain(pod)))

    assert selector == {"disk": "ssd"}
    assert pods.plain(pod) == before
    one, other, _ = first.spec.tolerations
    assert one is not other


@pytest.mark.parametrize(
    "more",
    [
        {"extra_pod_config": {"dnsConfig": {"options": [{"name": "ndots", "newer": "field"}]}}},
        {"extra_containers": [{"name": "side", "resources": {"someday": {"a": [1, None]}}}]},
        {"init_containers": [client.V1Container(name="first", image="first")]},
        {"extra_pod_config": {"tolerations": [{"operator": "Exists", "comparison": "Gt"}]}},
        {"extra_pod_config": {"hostAliases": [{"hostnames": "no list"}]}},
        {"extra_pod_config": {"initContainers": ({"name": "first", "image": "first"},)}},
    ],
    ids=["newer field", "unknown field", "a model", "unknown in a list", "invalid", "a tuple"],
)
@pytest.mark.parametrize("change", CHANGES)
def test_fields_that_the_client_does_not_know_are_kept(
    more: dict[str, Any], change: Callable[[Manifest], Manifest]
) -> None:
    pod = stock_pod(**more)
    to = change(pods.plain(pod))

    assert pods.plain(changed(pod, to)) == to


def test_a_new_object_with_a_field_that_the_client_does_not_know_is_plain() -> None:
    pod = stock_pod()
    spec = pods.plain(pod)["spec"]
    newer = {"name": "m", "someday": {"a": 1}}
    to = {**pods.plain(pod), "spec": {**spec, "volumes": [*spec["volumes"], newer]}}

    made = changed(pod, to)

    assert made.spec.volumes == [pod.spec.volumes[0], newer]


# Random configuration, and a hook that looks at everything.

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
ANYTHING = st.recursive(
    SCALARS,
    lambda it: st.lists(it, max_size=3) | st.dictionaries(st.text(max_size=5), it, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from("abc")
READ = ("affinity", "tolerations", "volumes", "nodeSelector", "initContainers", "containers")
"""The fields that a grant reads, so they are as the API writes them."""
WRITTEN = ("activeDeadlineSeconds", "runtimeClassName")
FREE = sorted({*client.V1PodSpec.attribute_map.values()} - {*READ, *WRITTEN})


def objects(kind: Any, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Objects of a kind as administrators write them: plain, or as models."""
    names = {written: name for name, written in kind.attribute_map.items()}
    plain = st.fixed_dictionaries(fields)
    return plain | plain.map(lambda it: kind(**{names[key]: value for key, value in it.items()}))


TERMS = st.lists(
    objects(
        client.V1NodeSelectorTerm,
        matchExpressions=st.lists(
            st.fixed_dictionaries({"key": NAMES, "operator": st.just("Exists")}), max_size=2
        ),
    ),
    min_size=1,
    max_size=2,
)
NODE_AFFINITY = objects(
    client.V1NodeAffinity,
    requiredDuringSchedulingIgnoredDuringExecution=objects(
        client.V1NodeSelector, nodeSelectorTerms=TERMS
    ),
)
CONTAINER = objects(
    client.V1Container,
    name=NAMES,
    env=st.lists(objects(client.V1EnvVar, name=NAMES, valueFrom=ANYTHING), max_size=2),
    securityContext=ANYTHING,
)
EXTRA_POD_CONFIG = st.dictionaries(st.sampled_from(FREE), ANYTHING, max_size=4).flatmap(
    lambda free: st.fixed_dictionaries(
        {},
        optional={
            "affinity": objects(
                client.V1Affinity, nodeAffinity=NODE_AFFINITY, podAffinity=ANYTHING
            ),
            "tolerations": st.lists(
                objects(client.V1Toleration, key=NAMES, operator=st.just("Exists")), max_size=3
            ),
            "volumes": st.lists(
                objects(client.V1Volume, name=NAMES, persistentVolumeClaim=ANYTHING), max_size=3
            ),
            "initContainers": st.lists(CONTAINER, max_size=2),
            "nodeSelector": st.dictionaries(NAMES, NAMES, max_size=2),
            "activeDeadlineSeconds": st.integers(1, 7200),
            "runtimeClassName": NAMES,
        },
    ).map(lambda read: {**free, **read})
)
EXTRA_CONTAINER_CONFIG = st.fixed_dictionaries(
    {},
    optional={
        "env": st.lists(objects(client.V1EnvVar, name=NAMES, valueFrom=ANYTHING), max_size=3),
        "resources": objects(client.V1ResourceRequirements, limits=st.just({"cpu": "1"})),
        "securityContext": ANYTHING,
        "volumeMounts": st.just([{"name": "home", "mountPath": "/a"}]),
    },
)


@given(EXTRA_POD_CONFIG, EXTRA_CONTAINER_CONFIG, st.sampled_from(CHANGES))
def test_whatever_is_configured_a_hook_finds_all_that_kubespawner_made(
    pod_config: dict[str, Any],
    container_config: dict[str, Any],
    change: Callable[[Manifest], Manifest],
) -> None:
    pod = stock_pod(extra_pod_config=pod_config, extra_container_config=container_config)
    before = pods.plain(pod)
    try:
        to = change(before)
    except manifest.ManifestError:  # as a volume with the name of another one
        return

    made = changed(pod, to)

    look(pod, made)
    assert pods.plain(made) == to
    assert pods.plain(pod) == before
    assert made.to_str()
