"""Attempts to get more than the policies allow, each of which fails."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from html import unescape

import pytest

from tests.fixtures.cluster import AddNodes
from tests.hub.conftest import StartGPUHub
from tests.hub.kept import LendHub
from tests.hub.policies.test_policies import NODES, OFFERS
from tests.hub.running import RunningHub

LIMITED = """
c.JupyterHub.cleanup_servers = False
c.GPUSpawner.policies = {
    "two": {"gpus_per_user": 2, "except": {"groups": ["staff"]}},
    "course": {"groups": ["course"], "gpus_per_group": 3},
}
"""
GPU = {"accelerator": "t4", "gpus": 1}


@pytest.fixture
def hub(kept_hub: LendHub, add_nodes: AddNodes) -> RunningHub:
    add_nodes(NODES)
    return kept_hub(OFFERS + LIMITED)


def start(
    hub: RunningHub, user: str, server: str = "", options: object = GPU, **more: object
) -> int:
    path = f"/users/{user}/servers/{server}" if server else f"/users/{user}/server"
    return hub.api("POST", path, options, **more).status_code


def held(hub: RunningHub) -> int:
    """The GPUs that the namespace's pods hold."""
    return sum(
        int(pod["spec"]["containers"][0]["resources"]["limits"].get("nvidia.com/gpu", 0))
        for pod in hub.pods.all()
    )


def test_many_requests_at_once_get_no_more(hub: RunningHub) -> None:
    hub.api("POST", "/users/dora")
    with ThreadPoolExecutor(8) as tabs:
        answers = list(tabs.map(lambda n: start(hub, "dora", f"s{n}"), range(8)))

    assert sorted(answers).count(409) == 6
    assert held(hub) == 2


def test_an_administrator_s_start_is_judged_for_the_owner(hub: RunningHub) -> None:
    admin = hub.person("admin")
    hub.api("POST", "/users/dora")
    assert start(hub, "dora", "a", {**GPU, "gpus": 2}) in (201, 202)

    assert start(hub, "dora") == 409
    form = {"accelerator": "t4", "gpus--t4": "1"}
    page = admin.session.post(f"{hub.url}/hub/spawn/dora", data=form, params={"_xsrf": admin.xsrf})
    assert "at a time, and you're using 2" in unescape(page.text)


def test_saved_options_are_judged_at_the_start(hub: RunningHub) -> None:
    hub.api("POST", "/users/dora")
    assert start(hub, "dora", "a") in (201, 202)
    hub.change_database(
        "INSERT OR REPLACE INTO spawners (user_id, name, user_options) "
        "SELECT id, 'b', ? FROM users WHERE name = 'dora'",
        '{"accelerator": "t4", "gpus": 2}',
    )

    assert start(hub, "dora", "b", None) == 409
    assert held(hub) == 1


def test_nobody_reads_the_names_of_others(hub: RunningHub) -> None:
    for user in ("ann", "bob"):
        assert start(hub, user, "secret-name") in (201, 202)
    cleo = hub.person("cleo")
    refused = cleo.submit({"accelerator": "t4", "gpus": "2"})

    assert "The group course can have 3 GPUs at a time, and uses 2" in refused.text
    for name in ("ann", "bob", "secret-name"):
        assert name not in refused.html


def test_what_cannot_be_counted_is_not_allowed(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes
) -> None:
    add_nodes(NODES)
    broken = """
from gpuspawner.policies import accounts
accounts.servers_of = lambda namespace: accounts_kind
from gpuspawner.cluster.kinds import ObjectKind
accounts_kind = ObjectKind("ServerPod", "/api/v1/namespaces/kube-system/secrets")
"""
    with start_gpu_hub(broken + OFFERS + LIMITED) as hub:
        hub.api("POST", "/users/dora")
        answer = hub.api("POST", "/users/dora/server", GPU)

        assert answer.status_code == 503
        assert answer.headers["Retry-After"] == "10"
        assert "can't count right now" in answer.json()["message"]
        assert hub.api("POST", "/users/dora/server", {"accelerator": None}).status_code != 503
