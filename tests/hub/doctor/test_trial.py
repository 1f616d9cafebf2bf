"""`gpuspawner doctor --start`: a server of a real hub, of which nothing is left."""

import json
import re
import signal

import pytest

from tests.hub.configurations import ANSWER_AT_ONCE, T4, t4_nodes
from tests.hub.running import API_TOKEN
from tests.waiting import wait_for

COMMAND = 300.0  # seconds until a command that hangs is given up; a busy machine takes long for one
NAMED = "c.JupyterHub.allow_named_servers = True\n"
HOMES = "c.KubeSpawner.storage_pvc_ensure = True\nc.KubeSpawner.storage_capacity = '1Gi'\n"
SHARED = 'c.KubeSpawner.pvc_name_template = "claim-{username}"\n'
BY_ID = """
c.KubeSpawner.pod_name_template = "server-{userid}-{user_server}"
c.KubeSpawner.pvc_name_template = "home-{userid}-{user_server}"
"""
SLOW = """
c.KubeSpawner.profile_list = [{
    "display_name": "Slow", "slug": "slow",
    "kubespawner_override": {"cmd": ["sleep", "1000"]}}]
"""


def ask(hub, user, *more, token=API_TOKEN):
    """Return the exit status, what was found of the start, and what was told meanwhile."""
    arguments = ("doctor", "--start", "--user", user, "--output", "json", *more)
    process = hub.command(*arguments, token=token)
    printed, told = process.communicate(timeout=COMMAND)
    assert process.returncode in {0, 1}, told
    [found] = [it for it in json.loads(printed)["findings"] if it["id"].startswith("start")]
    return process.returncode, found, told


def claims(hub):
    path = f"/api/v1/namespaces/{hub.pods.namespace}/persistentvolumeclaims"
    found = [it["metadata"] for it in hub.pods.cluster.api.items(path)]
    # The local cluster has no controller that ends the protection of claims.
    return {it["name"] for it in found if "deletionTimestamp" not in it}


def own_token(hub, user, *scopes):
    person = hub.person(user)
    path, sent = f"{hub.url}/hub/api/users/{user}/tokens", {"_xsrf": person.xsrf}
    return str(person.session.post(path, params=sent, json={"scopes": scopes}).json()["token"])


def servers(hub, user):
    return set(hub.api("GET", f"/users/{user}?include_stopped_servers").json()["servers"])


@pytest.mark.each_hub
def test_a_server_beside_the_user_s_own_is_started_described_and_removed(kept_hub, add_nodes):
    [node] = add_nodes(t4_nodes(1, 2))
    hub = kept_hub(T4 + NAMED + HOMES)
    hub.start_until_ready("alice", {"accelerator": "t4"})
    alices, its_claims = hub.pods.of("alice"), claims(hub)

    token = own_token(hub, "alice", "servers!user")
    _, found, told = ask(hub, "alice", "--accelerator", "t4", token=token)

    assert found["severity"] == "fine", found
    text = rf"alice's server was ready after \d+ s, on the node {node} with 1 × nvidia.com/gpu\. "
    assert re.match(text + "The image .* was", found["text"]), found
    assert "Server ready at /user/alice/doctor-" in told
    assert hub.pods.names() == {"jupyter-alice"}
    assert hub.pods.of("alice")["metadata"]["uid"] == alices["metadata"]["uid"]
    assert claims(hub) == its_claims
    assert not any(it.startswith("doctor") for it in servers(hub, "alice"))


@pytest.mark.each_hub
def test_names_with_the_user_s_id_in_them_are_found(kept_hub, add_nodes):
    [node] = add_nodes(t4_nodes(1, 1))
    hub = kept_hub(T4 + NAMED + HOMES + BY_ID)
    hub.api("POST", "/users/hal")

    _, found, told = ask(hub, "hal", "--accelerator", "t4")

    assert f"on the node {node} with 1 × nvidia.com/gpu." in found["text"], found
    assert "The server was removed." in told
    assert hub.pods.names() == set()
    assert claims(hub) == set()


def test_a_refused_server_leaves_nothing(kept_hub, add_nodes):
    add_nodes(t4_nodes(1, 1))
    hub = kept_hub(T4 + NAMED + HOMES)
    hub.start_until_ready("alice", {"accelerator": "t4"})

    status, found, _ = ask(hub, "alice", "--accelerator", "t4")

    assert (status, found["severity"]) == (1, "error")
    assert "HTTP 409: The one Tesla T4 is in use right now." in found["text"]
    assert not any(it.startswith("doctor") for it in servers(hub, "alice"))


def test_a_server_that_the_hub_itself_refuses_leaves_nothing(kept_hub, add_nodes):
    add_nodes(t4_nodes(1, 1))
    hub = kept_hub(T4 + NAMED + "c.JupyterHub.named_server_limit_per_user = 1\n")
    hub.api("POST", "/users/gus")
    hub.api("POST", "/users/gus/servers/own", {"accelerator": None})

    status, found, _ = ask(hub, "gus", "--accelerator", "t4")

    assert (status, found["id"], found["severity"]) == (1, "start", "error")
    assert "HTTP 400: User gus already has the maximum of 1 named servers." in found["text"]


@pytest.mark.each_hub
@pytest.mark.parametrize("homes", [HOMES, HOMES + SHARED], ids=["own", "shared"])
def test_an_interrupted_start_leaves_nothing_but_a_home_that_other_servers_share(
    kept_hub, add_nodes, homes
):
    add_nodes(t4_nodes(1, 1))
    hub = kept_hub(SLOW + NAMED + homes + ANSWER_AT_ONCE)
    hub.api("POST", "/users/dora")
    begun = hub.command("doctor", "--start", "--user", "dora", "--profile", "slow")
    wait_for(hub.pods.names, timeout=COMMAND)

    begun.send_signal(signal.SIGINT)

    _, told = begun.communicate(timeout=COMMAND)
    assert begun.returncode == 130, told
    assert "The server was removed." in told
    assert hub.pods.names() == set()
    assert servers(hub, "dora") <= {""}
    assert claims(hub) == ({"claim-dora"} if SHARED in homes else set())


@pytest.mark.each_hub
def test_without_named_servers_it_is_the_default_one_unless_that_is_in_use(kept_hub, add_nodes):
    add_nodes(t4_nodes(1, 2))
    hub = kept_hub(T4 + HOMES)
    hub.api("POST", "/users/erin")

    _, found, told = ask(hub, "erin", "--accelerator", "t4")

    assert found["severity"] == "fine", found
    assert "Server ready at /user/erin/\n" in told
    assert hub.pods.names() == set()
    hub.start_until_ready("erin", {"accelerator": "t4"})

    _, found, _ = ask(hub, "erin", "--accelerator", "t4")

    assert "the hub has no named servers, and the default server is in use" in found["text"]
    assert hub.server("erin")["ready"]
    assert claims(hub) == {"claim-erin"}


@pytest.mark.parametrize(("user", "scope"), [("fay", "read:users:name"), ("nobody", "servers")])
def test_who_has_a_token_that_may_not_start_it_reads_the_scope(kept_hub, add_nodes, user, scope):
    add_nodes(t4_nodes(1, 1))
    hub = kept_hub(T4 + NAMED)
    token = own_token(hub, "fay", f"{scope}!user")

    status, found, _ = ask(hub, user, "--accelerator", "t4", token=token)

    assert (status, found["severity"]) == (1, "error")
    assert re.search("HTTP 40[34]", found["text"])
    assert f"servers!user={user}, which has read:servers and delete:servers" in found["advice"]
    assert hub.pods.names() == set()
