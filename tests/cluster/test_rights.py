"""The hub's rights from the files, and what is unknown, and said, without each of them."""

from __future__ import annotations

import logging
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from gpuspawner.cluster.health import Forbidden, is_forbidden
from gpuspawner.cluster.kinds import KARPENTER_KINDS, KINDS, SCALING_KINDS, ObjectKind, status_at
from gpuspawner.scheduling import Outcome, Why, evaluate
from localcluster import Fleet, LocalCluster, LocalClusterError, NodeGroup, rbac
from tests.cluster.views import BACKOFF, until, until_autoscalers_are_known, viewing
from tests.waiting import PATIENCE, wait_for

Object = dict[str, Any]

ROOT = Path(__file__).parents[2]
HOW_TO = ROOT / "docs" / "how-to" / "rbac.md"
ALL, MINIMAL = "gpuspawner rbac", "gpuspawner rbac minimal"

GPU = "nvidia.com/gpu"
DRIVER = "disk.example"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
STORAGE = "/apis/storage.k8s.io/v1"
STATUS = "cluster-autoscaler-status"
AUTOSCALER_STATUS = status_at(f"kube-system/{STATUS}")

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


def lines(caplog: pytest.LogCaptureFixture, words: str) -> list[str]:
    return [line for line in said(caplog).splitlines() if words in line]


@contextmanager
def applied(cluster: LocalCluster, rights: str, namespace: str) -> Iterator[None]:
    """Give a hub its rights by the how-to's command for a namespace of any name."""
    [command] = re.findall(r"^\$ (gpuspawner rbac .+)$", HOW_TO.read_text(), re.MULTILINE)
    assert " staging " in command
    of_hub = command.replace(" staging ", f" {namespace} ").replace(ALL, rights)
    programs = (cluster.directory, Path(sys.executable).parent)
    path = os.pathsep.join([*map(str, programs), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "KUBECONFIG": str(cluster.kubeconfig)}

    def run(line: str) -> None:
        subprocess.run(["sh", "-c", line], cwd=ROOT, env=environment, check=True)

    run(of_hub)
    try:
        yield
    finally:
        run(of_hub.replace("kubectl apply", "kubectl delete --wait=false --ignore-not-found"))


def may(cluster: LocalCluster, account: str, verb: str, resource: str, namespace: str = "") -> bool:
    """Whether the service account `hub` of a namespace may do this; in all, if none is named."""
    attributes = {"verb": verb, "resource": resource, "namespace": namespace}
    spec = {"user": f"system:serviceaccount:{account}:hub", "resourceAttributes": attributes}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    return bool(cluster.api.create(path, {"spec": spec})["status"]["allowed"])


@pytest.mark.parametrize("second", [ALL, MINIMAL])
@pytest.mark.parametrize("first", [ALL, MINIMAL])
def test_two_hubs_in_one_cluster_each_have_the_rights_of_their_own_command(
    cluster: LocalCluster, namespace: str, first: str, second: str
) -> None:
    other = f"{namespace}-2"
    granted = {namespace: first, other: second}
    with applied(cluster, first, namespace):
        wait_for(lambda: may(cluster, namespace, "list", "pods"))
        with applied(cluster, second, other):
            wait_for(lambda: may(cluster, other, "list", "pods"))

            for hub, rights in granted.items():
                assert may(cluster, hub, "list", "pods")
                assert may(cluster, hub, "watch", "nodes")
                assert may(cluster, hub, "list", "persistentvolumes") is (rights == ALL)
        wait_for(lambda: not may(cluster, other, "list", "pods"))
        assert may(cluster, namespace, "list", "pods")


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
    account: Account, forbidden: ObjectKind
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


# A watch goes on without the right until it ends, which takes a minute in a hub.
SOON = replace(BACKOFF, watch=2.0, doubt=0.5)
LIVE = "The view of the cluster is live."


async def test_a_hub_that_loses_all_rights_while_it_runs_says_so_and_when_they_are_back(
    cluster: LocalCluster, account: Account, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "gpuspawner.cluster")
    binding = f"{RBAC}/clusterrolebindings/gpuspawner-{namespace}"
    async with viewing(account.with_rights(), SOON) as view:
        await until(view, lambda: LIVE in said(caplog))
        cluster.api.delete(binding)
        await until(view, lambda: "list and watch nodes and pods (" in said(caplog))
        account.with_rights()
        await until(view, lambda: len(lines(caplog, LIVE)) >= 2)
        await until(view, lambda: one_by_one(caplog, "isn't allowed") == one_by_one(caplog, "may"))

    # Their watches end one after the other.
    told = [line.partition(" (")[0] for line in lines(caplog, "isn't allowed")]
    assert len(told) == len(set(told))


def one_by_one(caplog: pytest.LogCaptureFixture, words: str) -> list[str]:
    """The rights in the lines with these words, but for those that every verdict needs."""
    listed = [line.partition("and watch ")[2] for line in lines(caplog, words)]
    names = [re.split(r", ", re.split(r"[;.(]", text)[0]) for text in listed]
    return sorted(name for each in names for name in each if not name.startswith(("nodes", "pods")))


@pytest.mark.parametrize(
    ("resource", "name"),
    [
        ("persistentvolumes", "persistentvolumes"),
        ("configmaps", f"configmaps (metadata.name={STATUS})"),
    ],
)
async def test_so_does_one_that_loses_one_right(
    account: Account, resource: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "gpuspawner.cluster")
    async with viewing(account.with_rights(), SOON, SCALING_KINDS) as view:
        await until(view, lambda: LIVE in said(caplog))
        await until_autoscalers_are_known(view)
        account.with_rights(but=resource)
        await until(view, lambda: "isn't allowed" in said(caplog))
        account.with_rights()
        await until(view, lambda: "may now" in said(caplog))

    [lost] = lines(caplog, "isn't allowed")
    assert f"list and watch {name}; " in lost
    assert lines(caplog, "may now") == [f"The hub may now list and watch {name}."]
