"""Each right of rbac.yaml taken away in turn: what is unknown without it, and what the log says."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuspawner.cluster.health import Forbidden, is_forbidden
from gpuspawner.cluster.kinds import AUTOSCALER_STATUS, KARPENTER_KINDS, KINDS, SCALING_KINDS, Kind
from gpuspawner.scheduling import Outcome, Why, evaluate
from localcluster import Fleet, LocalCluster, LocalClusterError, NodeGroup, rbac
from tests.cluster.views import until, until_autoscalers_are_known, viewing
from tests.waiting import PATIENCE, wait_for

Object = dict[str, Any]

GPU = "nvidia.com/gpu"
DRIVER = "disk.example"
STORAGE = "/apis/storage.k8s.io/v1"
STATUS = "cluster-autoscaler-status"

ANTI_AFFINITY = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "labelSelector": {"matchLabels": {"a": "b"}},
                "namespaceSelector": {"matchLabels": {"team": "x"}},
                "topologyKey": "kubernetes.io/hostname",
            }
        ]
    }
}


def claiming(name: str) -> Object:
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]}


def asking(resource: str) -> Object:
    amounts = {resource: "1"}
    resources = {"requests": amounts, "limits": amounts}
    return {"containers": [{"name": "notebook", "image": "x", "resources": resources}]}


# What makes a pod's verdict depend on a kind, by the kind's name in RBAC.
DEPENDS: dict[str, Object] = {
    "namespaces": {"affinity": ANTI_AFFINITY},
    "persistentvolumeclaims": claiming("home"),
    "persistentvolumes": claiming("home"),
    "storageclasses": claiming("new"),
    "csinodes": claiming("home"),
    "csidrivers": claiming("new"),
    "csistoragecapacities": claiming("new"),
    "volumeattachments": claiming("home"),
    "deviceclasses": asking("example.com/fpga"),
    "priorityclasses": asking(GPU),
}


class World:
    """A node whose GPU is in use, and a driver of volumes with a limit."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster
        self.name = f"rights-{secrets.token_hex(3)}"
        room = {"cpu": "8", "memory": "32Gi", "pods": "110", GPU: "1"}
        (self.node,) = cluster.add_nodes(Fleet((NodeGroup(self.name, 1, room),)))
        create, named = cluster.api.create, {"name": self.name}
        create("/api/v1/namespaces", {"metadata": named})
        here = f"/api/v1/namespaces/{self.name}"
        holder = {**asking(GPU), "nodeName": self.node}
        create(f"{here}/pods", {"metadata": {"name": "holder"}, "spec": holder})

        driver = {"name": DRIVER, "nodeID": "n", "allocatable": {"count": 5}}
        create(f"{STORAGE}/csidrivers", {"metadata": {"name": DRIVER}, "spec": {}})
        owner = {"name": self.node}
        create(f"{STORAGE}/csinodes", {"metadata": owner, "spec": {"drivers": [driver]}})
        mode = "WaitForFirstConsumer"
        class_ = {"metadata": named, "provisioner": DRIVER, "volumeBindingMode": mode}
        create(f"{STORAGE}/storageclasses", class_)
        size = {"accessModes": ["ReadWriteOnce"], "storageClassName": self.name}
        disk = {"csi": {"driver": DRIVER, "volumeHandle": "d"}, "capacity": {"storage": "1Gi"}}
        claim = {"claimRef": {"namespace": self.name, "name": "home"}}
        spec = {**size, **disk, **claim}
        create("/api/v1/persistentvolumes", {"metadata": named, "spec": spec})
        for name, volume in (("home", {"volumeName": self.name}), ("new", {})):
            wanted = {**size, **volume, "resources": {"requests": {"storage": "1Gi"}}}
            body = {"metadata": {"name": name}, "spec": wanted}
            create(f"{here}/persistentvolumeclaims", body)
        home = f"{here}/persistentvolumeclaims/home"
        wait_for(lambda: cluster.api.get(home)["status"]["phase"] == "Bound")

    def pod(self, fields: Object) -> Object:
        metadata = {"name": "jupyter-ann", "namespace": self.name, "labels": {"a": "b"}}
        spec = {**asking("cpu"), "nodeSelector": {"kubernetes.io/hostname": self.node}, **fields}
        return {"metadata": metadata, "spec": spec}

    def remove(self) -> None:
        api = self.cluster.api
        self.cluster.remove_nodes([self.node])
        for path in (
            f"{STORAGE}/csidrivers/{DRIVER}",
            f"{STORAGE}/storageclasses/{self.name}",
            f"/api/v1/persistentvolumes/{self.name}",
            f"/api/v1/namespaces/{self.name}",
        ):
            api.delete(path)


@pytest.fixture(scope="module")
def world(reporting_cluster: LocalCluster) -> Iterator[World]:
    made = World(reporting_cluster)
    yield made
    made.remove()


class Account:
    """The service account of a hub, with rbac.yaml or a part of it."""

    def __init__(self, cluster: LocalCluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace

    def with_rights(self, manifest: Path = rbac.MANIFEST, *, but: str = "") -> Path:
        """Return its kubeconfig, with the rights of a manifest but for this resource."""
        objects = rbac.manifest_objects(self._namespace, manifest)
        for item in objects:
            rules = item.get("rules", [])
            for rule in rules:
                rule["resources"] = [name for name in rule["resources"] if name != but]
            if rules:
                item["rules"] = [rule for rule in rules if rule["resources"]]
        self._cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
        return self._cluster.service_account_kubeconfig(self._namespace, "hub")

    def remove(self) -> None:
        objects = yaml.safe_dump_all(rbac.manifest_objects(self._namespace))
        self._cluster.kubectl(
            "delete", "--ignore-not-found", "--wait=false", "-f", "-", stdin=objects
        )


@pytest.fixture
def account(cluster: LocalCluster, namespace: str) -> Iterator[Account]:
    made = Account(cluster, namespace)
    yield made
    made.remove()


def said(caplog: pytest.LogCaptureFixture) -> str:
    return "\n".join(record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("resource", sorted(DEPENDS))
async def test_without_one_right_only_what_depends_on_it_is_unknown(
    world: World, account: Account, resource: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "gpuspawner.cluster")
    async with viewing(account.with_rights(but=resource)) as view:
        assert await view.first_list(PATIENCE)
        await until(view, lambda: "isn't allowed" in said(caplog))
        verdict = evaluate(view.state, world.pod(DEPENDS[resource]))
        others = evaluate(view.state, world.pod({}))

    assert verdict.outcome is Outcome.UNKNOWN
    kinds = {kind.plural: kind.name for kind in KINDS}
    assert [(doubt.why, doubt.detail) for doubt in verdict.unknown] == [
        (Why.NOT_KNOWN, kinds[resource])
    ]
    assert others.outcome is Outcome.FITS
    assert f"The hub isn't allowed to list and watch {resource};" in said(caplog)


@pytest.mark.parametrize("resource", ["nodes", "pods"])
async def test_without_nodes_or_pods_everything_is_unknown(
    world: World, account: Account, resource: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with viewing(account.with_rights(but=resource)) as view:
        assert not await view.first_list(PATIENCE)
        await until(view, lambda: "isn't allowed" in said(caplog))
        assert isinstance(view.health(), Forbidden)
        verdict = evaluate(view.state, world.pod({}))

    assert verdict.outcome is Outcome.UNKNOWN
    assert f"The hub isn't allowed to list and watch {resource} (" in said(caplog)


async def test_with_all_rights_everything_is_known(
    world: World, account: Account, caplog: pytest.LogCaptureFixture
) -> None:
    async with viewing(account.with_rights()) as view:
        assert await view.first_list(PATIENCE)
        await until(view, lambda: all(view.state.known(kind.name) for kind in KINDS))
        verdicts = [evaluate(view.state, world.pod(fields)) for fields in DEPENDS.values()]

    assert [verdict.unknown for verdict in verdicts] == [()] * len(DEPENDS)
    assert "isn't allowed" not in said(caplog)


async def test_with_the_minimal_rights_gpus_count_and_volumes_are_unknown(
    world: World, account: Account, caplog: pytest.LogCaptureFixture
) -> None:
    minimal = rbac.MANIFEST.with_name("rbac-minimal.yaml")
    taken = {**asking(GPU), "priority": 0}
    async with viewing(account.with_rights(minimal)) as view:
        assert await view.first_list(PATIENCE)
        await until(view, lambda: "isn't allowed" in said(caplog))
        busy = evaluate(view.state, world.pod(taken))
        volume = evaluate(view.state, world.pod(claiming("home")))
        both = evaluate(view.state, world.pod({**taken, **claiming("home")}))

    assert busy.outcome is Outcome.BUSY
    assert volume.outcome is Outcome.UNKNOWN
    assert both.outcome is Outcome.BUSY
    for resource in DEPENDS:
        assert resource in said(caplog)


def test_of_all_configmaps_the_hub_reads_only_the_autoscalers_status(
    cluster: LocalCluster, account: Account
) -> None:
    path = "/api/v1/namespaces/kube-system/configmaps"
    own = ("--kubeconfig", str(account.with_rights()), "--namespace", "kube-system")
    cluster.api.create(path, {"metadata": {"name": STATUS}, "data": {"status": "fine"}})
    try:
        selector = ("--field-selector", f"metadata.name={STATUS}")
        assert STATUS in cluster.kubectl(*own, "get", "configmaps", *selector)
        with pytest.raises(LocalClusterError, match="forbidden"):
            cluster.kubectl(*own, "get", "configmaps")
        with pytest.raises(LocalClusterError, match="forbidden"):
            cluster.kubectl(*own, "get", "configmap", "extension-apiserver-authentication")
    finally:
        cluster.api.delete(f"{path}/{STATUS}")


async def test_without_the_right_to_cluster_autoscalers_status_only_that_is_unknown(
    world: World, account: Account
) -> None:
    kubeconfig = account.with_rights(but=AUTOSCALER_STATUS.plural)
    async with viewing(kubeconfig, scaling_kinds=SCALING_KINDS) as view:
        assert await view.first_list(PATIENCE)
        (reflector,) = (it for it in view._scaling if it.kind == AUTOSCALER_STATUS)
        await until(view, lambda: is_forbidden(reflector))
        await until(view, lambda: all(view.autoscalers.known(it.name) for it in KARPENTER_KINDS))

        assert not view.autoscalers.known(AUTOSCALER_STATUS.name)
        assert evaluate(view.state, world.pod({})).outcome is Outcome.FITS


@pytest.mark.parametrize("forbidden", KARPENTER_KINDS, ids=lambda kind: kind.name)
async def test_a_cluster_without_karpenter_is_known_to_have_none_without_the_right_too(
    account: Account, forbidden: Kind
) -> None:
    """RBAC also forbids what doesn't exist. What exists stays unknown: see the tests above."""
    kubeconfig = account.with_rights(but=forbidden.plural)
    async with viewing(kubeconfig, scaling_kinds=SCALING_KINDS) as view:
        assert await view.first_list(PATIENCE)
        await until_autoscalers_are_known(view)


async def test_with_all_rights_the_autoscalers_objects_are_known(account: Account) -> None:
    async with viewing(account.with_rights(), scaling_kinds=SCALING_KINDS) as view:
        assert await view.first_list(PATIENCE)
        await until_autoscalers_are_known(view)
