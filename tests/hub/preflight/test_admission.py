"""The API server's rejections are explained as clearly as a full cluster, and leave no pod."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from localcluster import Fleet, NodeGroup
from tests.fixtures.cluster import AddNodes
from tests.hub.kept import LendHub
from tests.hub.running import RunningHub
from tests.waiting import wait_for

# One hub with a different `preflight` for each of three kinds of users.
CONFIGURATION = """
from gpuspawner.spawner import GPUSpawner
from traitlets import default
class ByName(GPUSpawner):
    @default("preflight")
    def _by_name(self):
        return {"wanda": "warn", "otto": "off"}.get(self.user.name, "enforce")
c.JupyterHub.spawner_class = ByName
c.GPUSpawner.accelerators = {"t4": {
    "display_name": "Tesla T4", "counts": [1, 2], "node_selector": {"gpu": "t4"}}}
c.KubeSpawner.storage_pvc_ensure = True
c.KubeSpawner.storage_capacity = "10Gi"
c.KubeSpawner.pvc_name_template = "home-{username}"
"""
T4 = {"accelerator": "t4"}
TWO = {"accelerator": "t4", "gpus--t4": "2"}
LEVEL = "pod-security.kubernetes.io/enforce"


T4_NODE = NodeGroup(
    "t4",
    1,
    {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "2"},
    labels={"gpu": "t4"},
)


@pytest.fixture
def hub(kept_hub: LendHub, add_nodes: AddNodes) -> RunningHub:
    """A hub on a cluster with one node of two GPUs."""
    add_nodes(Fleet((T4_NODE,)))
    return kept_hub(CONFIGURATION)


@contextmanager
def quota(hub: RunningHub, **hard: str) -> Iterator[None]:
    """Create a ResourceQuota, and wait until the cluster counts its usage."""
    api, path = hub.pods.cluster.api, f"/api/v1/namespaces/{hub.pods.namespace}/resourcequotas"
    api.create(path, {"metadata": {"name": "team"}, "spec": {"hard": hard}})
    try:
        wait_for(lambda: api.get(f"{path}/team").get("status", {}).get("hard") == hard)
        yield
    finally:
        api.delete(f"{path}/team")


@contextmanager
def held(hub: RunningHub, gpus: int) -> Iterator[None]:
    """Let another pod hold this many GPUs."""
    api, limits = hub.pods.cluster.api, {"nvidia.com/gpu": str(gpus)}
    container = {"name": "c", "image": "x", "command": ["sleep", "3600"]}
    spec = {
        "nodeSelector": {"gpu": "t4"},
        "containers": [{**container, "resources": {"limits": limits}}],
    }
    api.create(hub.pods.path, {"metadata": {"name": "holder"}, "spec": spec})
    try:
        wait_for(lambda: api.get(f"{hub.pods.path}/holder")["spec"].get("nodeName"))
        yield
    finally:
        api.delete(f"{hub.pods.path}/holder", grace=0)
        wait_for(lambda: "holder" not in hub.pods.names())


def label_namespace(hub: RunningHub, labels: dict[str, str | None]) -> None:
    namespace = f"/api/v1/namespaces/{hub.pods.namespace}"
    hub.pods.cluster.api.patch(namespace, {"metadata": {"labels": labels}})


def refused(hub: RunningHub, user: str, options: dict[str, Any]) -> str:
    """Return the message of the 409 that *user* gets by REST."""
    answer = hub.start(user, options)
    assert answer.status_code == 409, answer.text
    message: str = answer.json()["message"]
    return message


def test_the_form_explains_a_quota_and_offers_what_it_leaves(hub: RunningHub) -> None:
    with quota(hub, **{"requests.nvidia.com/gpu": "1"}):
        page = hub.person("bob").submit(TWO)

    assert page.status == 409
    assert "The quota for GPUs is 1 in total, but your server needs 2." in page.text
    assert "Start with 1 × Tesla T4" in page.text
    assert not hub.pods.all()


def test_rest_explains_a_quota_with_its_usage(hub: RunningHub) -> None:
    with held(hub, 1), quota(hub, **{"requests.nvidia.com/gpu": "1"}):
        message = refused(hub, "bob", T4)
        assert hub.pods.names() == {"holder"}

    assert message == (
        "The quota for GPUs doesn't leave enough: 1 of 1 are in use, and your server needs 1. "
        "You can start without a GPU."
    )


def test_pod_security_is_explained_to_users_and_logged_in_full(
    hub: RunningHub,
) -> None:
    before = len(hub.log)
    label_namespace(hub, {LEVEL: "restricted"})
    try:
        page = hub.person("bob").submit(T4)
        message = refused(hub, "carol", {"accelerator": None})
    finally:
        label_namespace(hub, {LEVEL: None})

    told = "The cluster's Pod Security level, restricted, doesn't allow this server."
    assert page.status == 409
    assert told in page.text
    assert message.startswith(told)
    assert "runAsNonRoot != true" in hub.log[before:]
    assert "Traceback" not in hub.log[before:]
    assert not hub.pods.all()


def test_a_home_directory_that_is_too_large_is_reported(hub: RunningHub) -> None:
    with quota(hub, **{"requests.storage": "5Gi"}):
        message = refused(hub, "dora", T4)

    assert message.startswith(
        "The quota for storage is 5 GiB in total, but your home directory needs 10 GiB."
    )
    assert not hub.pods.all()


def test_with_preflight_warn_a_refusal_is_shown_and_the_pod_is_sent(hub: RunningHub) -> None:
    with ThreadPoolExecutor(1) as meanwhile:
        with held(hub, 2):
            wanda = hub.person("wanda")
            wait_for(lambda: "In use" in wanda.open("/hub/spawn").text)
            assert wanda.submit(T4).is_of_a_start
            wait_for(lambda: "jupyter-wanda" in hub.pods.names())
            events = meanwhile.submit(hub.events, "wanda")
            [line] = [it for it in hub.log.splitlines() if "Starting wanda anyway" in it]
        hub.until_ready("wanda")

    assert "Insufficient nvidia.com/gpu" in line
    assert [it["message"] for it in events.result() if "anyway" in it["message"]] == [
        "No Tesla T4 is free right now: all 2 are in use. Starting your server anyway."
    ]


def test_with_preflight_off_only_the_api_server_refuses(hub: RunningHub) -> None:
    before = len(hub.log)
    with held(hub, 2):
        otto = hub.person("otto")
        wait_for(lambda: "In use" in otto.open("/hub/spawn").text)
        assert otto.submit(T4).is_of_a_start
        wait_for(lambda: "jupyter-otto" in hub.pods.names())
        log = hub.log[before:]
        assert not [line for line in log.splitlines() if "otto" in line and "Refused" in line]
        hub.stop("otto")
        hub.expect_errors("Failed for {")  # so KubeSpawner writes of a pod that isn't created
        with quota(hub, **{"requests.nvidia.com/gpu": "2"}):
            message = refused(hub, "otto", T4)
        assert hub.pods.names() == {"holder"}

    assert message.startswith("The quota for GPUs doesn't leave enough: 2 of 2 are in use")


@pytest.mark.parametrize("user", ["wanda", "otto"])
def test_options_not_on_offer_are_refused_with_every_preflight(hub: RunningHub, user: str) -> None:
    answer = hub.start(user, {"accelerator": "t4", "gpus": 3})

    assert answer.status_code == 400
    assert not hub.pods.all()


def test_no_refusal_here_counts_as_a_failure_of_the_hub(hub: RunningHub) -> None:
    with quota(hub, **{"requests.nvidia.com/gpu": "0", "requests.storage": "0"}):
        for number in range(6):
            refused(hub, f"user-{number}", T4)

    assert hub.lives
    assert "consecutive spawn" not in hub.log
