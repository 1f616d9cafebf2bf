"""Policies together with the limits that JupyterHub, KubeSpawner and Kubernetes have themselves."""

from __future__ import annotations

import re

import pytest
from requests import Response

from localcluster import Fleet, NodeGroup
from tests.fixtures.cluster import AddNodes
from tests.hub.configurations import ANSWER_AT_ONCE
from tests.hub.kept import LendHub
from tests.hub.policies.test_policies import NODES, OFFERS
from tests.hub.policies.test_policy_attempts import GPU, LIMITED
from tests.hub.preflight.test_admission import quota
from tests.hub.running import RunningHub
from tests.hub.web.test_documented_examples import DOCS
from tests.waiting import wait_for

HOW_TO = DOCS / "how-to/policies.md"
TWO = {**GPU, "gpus": 2}
MORE_THAN_ALLOWED = {**GPU, "gpus": 4}
CPU = {"accelerator": None}
CPU_NODE = Fleet((NodeGroup("cpu", 1, {"cpu": "8", "memory": "16Gi", "pods": "110"}),))
NO_GPUS_IN_NAMED_SERVERS = """
c.JupyterHub.named_server_limit_per_user = 1
c.GPUSpawner.policies = {
    "two": {"gpus_per_user": 2}, "named": {"servers": ["?*"], "accelerators": []}}
"""
# `slow` has a server that never answers, so its start goes on.
SLOW = """
def never_answer(spawner):
    if spawner.user.name == "slow":
        spawner.cmd = ["sleep", "3600"]
c.KubeSpawner.pre_spawn_hook = never_answer
"""
OVERRIDES = """
c.JupyterHub.load_groups = {"course": {"users": ["ann"]}}
c.GPUSpawner.policies = {
    "gpus": {"gpus_per_user": 1},
    "memory": {"memory_per_server": "2Gi", "explanation": "Two GiB are for everybody."}}
c.KubeSpawner.mem_guarantee = "1G"
c.KubeSpawner.group_overrides = {"course": {
    "groups": ["course"],
    "spawner_override": {"policies": {}, "mem_guarantee": "4G", "mem_limit": "4G"}}}
"""


@pytest.fixture
def start(kept_hub: LendHub, add_nodes: AddNodes) -> LendHub:
    add_nodes(NODES)
    add_nodes(CPU_NODE)

    def started(configuration: str) -> RunningHub:
        hub = kept_hub(OFFERS + configuration)
        for user in ("ann", "bob"):
            hub.api("POST", f"/users/{user}")
        return hub

    return started


def ask(hub: RunningHub, user: str, server: str = "", options: object = GPU) -> Response:
    path = f"/users/{user}/servers/{server}" if server else f"/users/{user}/server"
    return hub.api("POST", path, options)


def is_documented(answer: Response, setting: str) -> bool:
    """Whether the how-to's table has the answer's status, and the beginning of its words."""
    [(status, words)] = re.findall(
        rf"\| `{setting}` \|.*\| (\d+) \| “(.*?)…?” \|", HOW_TO.read_text()
    )
    told: str = answer.json()["message"]
    assert (answer.status_code, told[: len(words)]) == (int(status), words)
    return True


def servers(hub: RunningHub, user: str) -> dict[str, dict[str, object]]:
    """The servers that are active, by name."""
    found: dict[str, dict[str, object]] = hub.api("GET", f"/users/{user}").json()["servers"]
    return found


def is_accepted(answer: Response) -> bool:
    return answer.status_code in (201, 202)


@pytest.mark.each_hub
def test_the_limit_of_named_servers_comes_first_and_counts_those_that_are_stopped(
    start: LendHub,
) -> None:
    hub = start(NO_GPUS_IN_NAMED_SERVERS)
    assert is_accepted(ask(hub, "ann", "first", CPU))
    wait_for(lambda: servers(hub, "ann")["first"]["ready"])
    hub.api("DELETE", "/users/ann/servers/first")
    wait_for(lambda: not servers(hub, "ann"))

    assert is_documented(ask(hub, "ann", "second"), "named_server_limit_per_user")
    assert ask(hub, "ann", "first").status_code == 403  # the policy's own refusal
    # A stopped server holds nothing of its owner's two GPUs.
    assert is_accepted(ask(hub, "ann", options=TWO))


def test_a_named_server_that_a_policy_refused_counts_until_it_is_deleted(start: LendHub) -> None:
    hub = start(NO_GPUS_IN_NAMED_SERVERS)
    assert ask(hub, "ann", "first").status_code == 403
    assert is_documented(ask(hub, "ann", "second", CPU), "named_server_limit_per_user")

    hub.api("DELETE", "/users/ann/servers/first", {"remove": True})
    assert is_accepted(ask(hub, "ann", "second", CPU))


@pytest.mark.each_hub
def test_the_limit_of_active_servers_comes_first_and_counts_servers_of_all_kinds(
    start: LendHub,
) -> None:
    hub = start(LIMITED + "c.JupyterHub.active_server_limit = 1\n")
    assert ask(hub, "ann", options=MORE_THAN_ALLOWED).status_code == 403

    # What a policy has refused is no active server.
    assert is_accepted(ask(hub, "bob", options=CPU))
    hub.until_ready("bob")
    full = ask(hub, "ann", options=MORE_THAN_ALLOWED)
    assert is_documented(full, "active_server_limit")


@pytest.mark.each_hub
def test_the_limit_of_concurrent_spawns_comes_first(start: LendHub) -> None:
    one_at_a_time = "c.JupyterHub.concurrent_spawn_limit = 1\n"
    hub = start(LIMITED + SLOW + ANSWER_AT_ONCE + one_at_a_time)
    assert hub.start("slow", CPU).status_code == 202
    throttled = ask(hub, "ann", options=MORE_THAN_ALLOWED)

    assert is_documented(throttled, "concurrent_spawn_limit")
    assert int(throttled.headers["Retry-After"]) > 0
    hub.stop("slow")
    assert ask(hub, "ann", options=MORE_THAN_ALLOWED).status_code == 403


def test_group_overrides_change_what_a_pod_requests_but_no_policy(start: LendHub) -> None:
    hub = start(OVERRIDES)
    assert is_accepted(ask(hub, "bob"))
    over = ask(hub, "ann")
    assert over.status_code == 403
    assert over.json()["message"].startswith("Two GiB are for everybody.")
    assert not [name for name in hub.pods.names() if "ann" in name]


@pytest.mark.parametrize("preflight", ["enforce", "off"])
def test_what_a_resource_quota_rejects_counts_toward_no_limit(
    start: LendHub, preflight: str
) -> None:
    hub = start(LIMITED + f"c.GPUSpawner.preflight = {preflight!r}\n")
    hub.expect_errors("Failed for {")  # so KubeSpawner writes of a pod that isn't created
    with quota(hub, **{"requests.nvidia.com/gpu": "1"}):
        rejected = ask(hub, "ann", "first", TWO)
    assert is_documented(rejected, "ResourceQuota")

    assert is_accepted(ask(hub, "ann", "second", TWO))
    assert "and you're using 2: second" in ask(hub, "ann", "third").json()["message"]


def test_the_policies_refuse_before_a_resource_quota_is_asked(start: LendHub) -> None:
    hub = start(LIMITED)
    with quota(hub, **{"requests.nvidia.com/gpu": "1"}):
        told = ask(hub, "ann", options=MORE_THAN_ALLOWED).json()["message"]

        assert told.startswith("The group course can have 3 GPUs at a time")
