"""Attempts to get more by what the hub's REST API can change, and by namespaces of one's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from localcluster import LocalCluster
from tests.fixtures.cluster import AddNodes
from tests.hub.conftest import StartGPUHub
from tests.hub.kept import LendHub
from tests.hub.pods import Pods
from tests.hub.policies.test_policies import NODES, OFFERS
from tests.hub.policies.test_policy_attempts import GPU, LIMITED, held, start
from tests.hub.policies.test_policy_counts import forge
from tests.hub.running import RunningHub
from tests.hub.versions import PUT_AND_PATCH

TWO, FOUR = {**GPU, "gpus": 2}, {**GPU, "gpus": 4}
EXPERIMENTS = """
c.GPUSpawner.policies = {"experiments": {
    "servers": ["?*"], "except": {"servers": ["exp-*"]}, "accelerators": []}}
"""


@pytest.fixture
def hub(kept_hub: LendHub, add_nodes: AddNodes) -> RunningHub:
    add_nodes(NODES)
    hub = kept_hub(OFFERS + LIMITED)
    hub.api("POST", "/users/dora")
    return hub


def own_token(hub: RunningHub, user: str) -> dict[str, dict[str, str]]:
    """Let a user make a token; return it as `RunningHub.api` takes it."""
    person = hub.person(user)
    address = f"{hub.url}/hub/api/users/{user}/tokens"
    made = person.session.post(address, params={"_xsrf": person.xsrf}, json={})
    return {"headers": {"Authorization": f"token {made.json()['token']}"}}


@pytest.mark.each_hub
@PUT_AND_PATCH
def test_a_server_created_with_too_many_gpus_starts_with_as_many_as_allowed(
    hub: RunningHub,
) -> None:
    created = hub.api("PUT", "/users/dora/servers/a", {"user_options": FOUR})
    assert created.status_code == 201

    assert start(hub, "dora", "a", None) in (201, 202)
    assert held(hub) == 1


@pytest.mark.each_hub
@PUT_AND_PATCH
def test_patched_options_are_judged_at_the_start(hub: RunningHub) -> None:
    assert start(hub, "dora", "a") in (201, 202)
    hub.api("PUT", "/users/dora/servers/b", {"user_options": GPU})
    patched = hub.api("PATCH", "/users/dora/servers/b", {"user_options": TWO})
    assert patched.status_code == 200

    assert start(hub, "dora", "b", None) == 409
    assert held(hub) == 1


@pytest.mark.each_hub
@PUT_AND_PATCH
def test_the_options_of_a_running_server_cannot_be_patched(hub: RunningHub) -> None:
    assert start(hub, "dora", "a", TWO) in (201, 202)
    patched = hub.api("PATCH", "/users/dora/servers/a", {"user_options": {"accelerator": None}})

    assert patched.status_code == 400
    assert start(hub, "dora", "b") == 409


@pytest.mark.each_hub
@PUT_AND_PATCH
def test_a_renamed_server_is_judged_by_its_new_name(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes
) -> None:
    add_nodes(NODES)
    with start_gpu_hub(OFFERS + EXPERIMENTS) as hub:
        hub.api("POST", "/users/dora")
        hub.api("PUT", "/users/dora/servers/exp-a", {"user_options": GPU})
        renamed = hub.api("PATCH", "/users/dora/servers/exp-a", {"name": "other"})
        assert renamed.status_code == 200

        start(hub, "dora", "other", None)
        assert held(hub) == 0
        assert start(hub, "dora", "other") == 403


def test_users_can_change_neither_their_groups_nor_their_names(hub: RunningHub) -> None:
    own = own_token(hub, "dora")
    assert start(hub, "dora", "a", TWO) in (201, 202)
    for change in ({"groups": ["staff"]}, {"name": "dora-2"}, {"admin": True}):
        assert hub.api("PATCH", "/users/dora", change, **own).status_code in (403, 404)
    joined = hub.api("POST", "/groups/staff/users", {"users": ["dora"]}, **own)
    assert joined.status_code in (403, 404)

    assert start(hub, "dora", "b", **own) == 409


EACH = """
c.KubeSpawner.enable_user_namespaces = True
c.KubeSpawner.user_namespace_template = c.KubeSpawner.namespace + "-{username}"
project = c.KubeSpawner.namespace + "-project"
def choose(spawner):
    if spawner.name.startswith("project"):
        spawner.namespace = project
c.KubeSpawner.pre_spawn_hook = choose
"""


@pytest.fixture
def each(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes, running_cluster: LocalCluster
) -> Iterator[RunningHub]:
    """A hub with a namespace for each user, or for a project if a hook chooses that."""
    add_nodes(NODES)
    # Only a hub with rights in all namespaces can make some.
    with start_gpu_hub(OFFERS + LIMITED + EACH, kubeconfig=running_cluster.kubeconfig) as hub:
        hub.until_it_sees_the_cluster()
        hub.api("POST", "/users/dora")
        yield hub
        for namespace in running_cluster.api.items("/api/v1/namespaces"):
            name = namespace["metadata"]["name"]
            if name.startswith(f"{hub.pods.namespace}-"):
                running_cluster.api.delete(f"/api/v1/namespaces/{name}/pods", grace=0)
                running_cluster.api.delete(f"/api/v1/namespaces/{name}")


def begin_again(hub: RunningHub) -> None:
    hub.end()
    hub.begin()
    hub.until_it_serves()


def test_a_namespace_for_each_user_hides_nothing(each: RunningHub) -> None:
    assert start(each, "dora", "a", TWO) in (201, 202)
    assert start(each, "dora", "b") == 409
    assert start(each, "ann", "a", TWO) in (201, 202)
    assert start(each, "bob", "a", TWO) == 409
    assert start(each, "bob", "a") in (201, 202)
    begin_again(each)
    assert start(each, "bob", "b") == 409


@pytest.mark.each_hub
def test_a_namespace_that_a_hook_has_chosen_hides_nothing(each: RunningHub) -> None:
    assert start(each, "dora", "project-a", TWO) in (201, 202)
    [pod] = Pods(each.pods.cluster, f"{each.pods.namespace}-project").all()
    assert pod["metadata"]["name"] == "jupyter-dora--project-a"

    assert start(each, "dora", "b") == 409
    begin_again(each)
    assert start(each, "dora", "b") == 409
    assert each.api("PATCH", "/users/dora", {"name": "theodora"}).status_code == 200
    assert start(each, "theodora", "b") == 409


@pytest.mark.each_hub
def test_a_pod_in_a_foreign_namespace_uses_up_nobody_s_limit(each: RunningHub) -> None:
    cluster, name = each.pods.cluster, f"{each.pods.namespace}-mallory"
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    mallory_s = Pods(cluster, name)
    for user in ("dora", "ann"):
        forge(mallory_s, user, '{"policies": ["course"], "groups": ["course"]}')

    assert start(each, "bob", "a") in (201, 202)  # whose pod the hub has seen after these
    assert start(each, "dora", "a", TWO) in (201, 202)
    assert start(each, "ann", "a", TWO) in (201, 202)
    begin_again(each)
    assert start(each, "ann", "b") == 409
    assert start(each, "dora", "b") == 409
