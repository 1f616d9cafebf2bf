"""What counts toward the policies' limits: the pods of this hub, for as long as they exist."""

from __future__ import annotations

import pytest

from gpuspawner.kube.servers import GRANT, SERVER, USER
from localcluster import LocalCluster, rbac
from tests.fixtures.cluster import AddNodes
from tests.hub.conftest import StartGPUHub
from tests.hub.kept import LendHub
from tests.hub.pods import Pods
from tests.hub.policies.test_policies import NODES, OFFERS
from tests.hub.policies.test_policy_attempts import GPU, LIMITED, start
from tests.hub.running import RunningHub
from tests.waiting import wait_for

TWO = {**GPU, "gpus": 2}
SLOW_TO_STOP = """
c.KubeSpawner.delete_grace_period = 300
c.KubeSpawner.cmd = ["sh", "-c", "trap '' TERM; exec " + " ".join(c.KubeSpawner.cmd)]
"""
# KubeSpawner's own GPUs for every server, before anybody thought of gpuspawner.
WITHOUT_GPUSPAWNER = """
c.JupyterHub.cleanup_servers = False
c.JupyterHub.spawner_class = "kubespawner.KubeSpawner"
c.KubeSpawner.extra_resource_limits = {"nvidia.com/gpu": "2"}
c.KubeSpawner.node_selector = {"gpu": "t4"}
c.KubeSpawner.tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
own_configure = gpuspawner.configure
gpuspawner.configure = lambda c: None
"""
WITH_GPUSPAWNER = """
for name in ("extra_resource_limits", "node_selector", "tolerations"):
    del c.KubeSpawner[name]
gpuspawner.configure = own_configure
"""


@pytest.fixture
def hub(kept_hub: LendHub, add_nodes: AddNodes) -> RunningHub:
    add_nodes(NODES)
    return kept_hub(OFFERS + LIMITED)


def refused(hub: RunningHub, user: str, server: str, options: object = GPU) -> str:
    """Return the words with which a limit refuses a server."""
    answer = hub.api("POST", f"/users/{user}/servers/{server}", options)
    assert answer.status_code == 409, answer.text
    told: str = answer.json()["message"]
    return told


def test_a_hub_that_was_killed_counts_the_servers_of_a_group(hub: RunningHub) -> None:
    hub.start_until_ready("ann", TWO)
    hub.kill()
    hub.begin()
    hub.until_it_serves()

    told = refused(hub, "bob", "b", TWO)
    assert "The group course can have 3 GPUs at a time, and uses 2" in told


def test_a_pod_that_outlived_its_server_counts(hub: RunningHub) -> None:
    hub.start_until_ready("dora", TWO)
    hub.change_database("UPDATE spawners SET server_id = NULL")
    assert hub.server("dora") == {}

    assert "You can have 2 GPUs at a time, and you're using 2" in refused(hub, "dora", "b")
    assert hub.start("dora", TWO).status_code in (201, 202)  # in place of the old pod
    hub.until_ready("dora")
    assert len(hub.pods.all()) == 1


def test_a_server_that_is_stopping_counts_until_its_pod_is_gone(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes
) -> None:
    add_nodes(NODES)
    with start_gpu_hub(OFFERS + LIMITED + SLOW_TO_STOP) as hub:
        hub.start_until_ready("dora", TWO)
        hub.api("DELETE", "/users/dora/server")
        wait_for(lambda: "deletionTimestamp" in hub.pods.of("dora")["metadata"])

        assert "you're using 2: your default server" in refused(hub, "dora", "b")
        hub.pods.delete("dora")
        wait_for(lambda: start(hub, "dora", "b") in (201, 202))


def test_of_two_hubs_in_one_namespace_each_counts_its_own_servers(
    hub: RunningHub, start_gpu_hub: StartGPUHub, running_cluster: LocalCluster
) -> None:
    # Without names of its own, the second hub would replace the pods of the first.
    shared = f"""
c.KubeSpawner.namespace = {hub.pods.namespace!r}
c.KubeSpawner.pod_name_template = "second-{{user_server}}"
"""
    rights = rbac.hub_kubeconfig(running_cluster, hub.pods.namespace)
    with start_gpu_hub(OFFERS + LIMITED + shared, kubeconfig=rights) as second:
        second.until_it_sees_the_cluster()
        hub.start_until_ready("bob", TWO)
        second.start_until_ready("bob", GPU)
        wait_for(lambda: len(hub.pods.all()) == 2)

        assert "you're using 2: your default server" in refused(hub, "bob", "b")
        assert "you're using 1: your default server" in refused(second, "bob", "b", TWO)
        hub.api("POST", "/users/ann")
        told = refused(hub, "ann", "b", TWO)
        assert "The group course can have 3 GPUs at a time, and uses 2" in told
        assert start(hub, "ann", "b") in (201, 202)
        second.stop("bob")


def test_servers_that_kubespawner_has_started_count_by_what_they_request(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes
) -> None:
    add_nodes(NODES)
    owner = "dora@lab"
    with start_gpu_hub(WITHOUT_GPUSPAWNER + OFFERS + LIMITED) as hub:
        hub.start_until_ready(owner)
        [pod] = hub.pods.all()
        path = f"{hub.pods.path}/{pod['metadata']['name']}"
        hub.pods.cluster.api.patch(path, {"metadata": {"annotations": None}})
        hub.reconfigure(*WITH_GPUSPAWNER.strip().splitlines())

        assert hub.server(owner)["ready"]
        assert "you're using 2: your default server" in refused(hub, owner, "b")
        hub.stop(owner)
        wait_for(lambda: start(hub, owner, "b") in (201, 202))


@pytest.mark.each_hub
def test_a_renamed_user_has_the_limits_of_before(hub: RunningHub) -> None:
    hub.start_until_ready("dora", GPU)
    hub.start_until_ready("ann", TWO)
    for old, new in (("dora", "theodora"), ("ann", "anna")):
        assert hub.api("PATCH", f"/users/{old}", {"name": new}).status_code == 200

    def limits_hold() -> None:
        assert "you're using 1: your default server" in refused(hub, "theodora", "b", TWO)
        assert "you're using 2: your default server" in refused(hub, "anna", "b")
        assert "The group course can have 3 GPUs at a time, and uses 2" in refused(
            hub, "bob", "b", TWO
        )

    hub.api("POST", "/users/bob")
    limits_hold()
    hub.end()
    hub.begin()
    hub.until_it_serves()
    limits_hold()
    hub.api("POST", "/users/dora")  # somebody else, who has nothing yet
    assert start(hub, "dora", "b", TWO) in (201, 202)
    hub.is_as_configured = False  # its users have other names


@pytest.mark.each_hub
def test_forged_pods_use_up_nobody_s_limit(hub: RunningHub) -> None:
    hub.start_until_ready("dora", GPU)
    grant = '{"policies": ["two", "course"], "groups": ["course"]}'
    path = f"{hub.pods.path}/jupyter-dora"
    hub.pods.cluster.api.patch(path, {"metadata": {"annotations": {GRANT: grant}}})
    for user in ("ann", "dora"):
        forge(hub.pods, user, grant)

    hub.start_until_ready("bob", GPU)  # whose pod the hub has seen after these
    assert "you're using 1: your default server" in refused(hub, "dora", "b", TWO)
    hub.api("POST", "/users/ann")
    assert start(hub, "ann", "b", TWO) in (201, 202)
    for user in ("ann", "dora"):
        hub.pods.cluster.api.delete(f"{hub.pods.path}/forged-{user}", grace=0)


def forge(pods: Pods, user: str, grant: str = "{}") -> None:
    """Create a Pending pod with eight GPUs that says that it is a server of somebody else."""
    labels = {"component": "singleuser-server", "app": "jupyterhub", USER: user}
    said = {USER: user, GRANT: grant}
    named = {"name": f"forged-{user}", "annotations": said, "labels": labels}
    resources = {"limits": {"nvidia.com/gpu": "8"}}
    container = {"name": "notebook", "image": "x", "resources": resources}
    spec = {"containers": [container], "nodeSelector": {"no": "where"}}
    pods.cluster.api.create(pods.path, {"metadata": named, "spec": spec})


def test_a_server_s_own_service_account_changes_nothing_of_what_counts(hub: RunningHub) -> None:
    hub.start_until_ready("ann", TWO)
    path = f"{hub.pods.path}/jupyter-ann"
    emptied = {GRANT: "{}", USER: "nobody", SERVER: "exp-1"}
    hub.pods.cluster.api.patch(path, {"metadata": {"annotations": emptied}})
    assert hub.api("DELETE", "/groups/course/users", {"users": ["ann"]}).status_code == 200
    hub.api("POST", "/users/bob")

    for _ in range(2):
        told = refused(hub, "bob", "b", TWO)
        assert "The group course can have 3 GPUs at a time, and uses 2" in told
        assert "you're using 2: your default server" in refused(hub, "ann", "b")
        hub.kill()
        hub.begin()
        hub.until_it_serves()
    hub.is_as_configured = False  # a group has lost a member
