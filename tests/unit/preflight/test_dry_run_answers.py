"""What a dry run sends, and how it reads each answer; tests/cluster has a real API server."""

from __future__ import annotations

import asyncio
import json
from copy import deepcopy
from typing import Any

import pytest
from kubernetes_asyncio.client import Configuration

from gpuspawner.cluster.client import Client, RequestError
from gpuspawner.preflight.dry_runs import DryRun, added_tolerations, changes
from gpuspawner.preflight.rejection import Missing, Of, Rejection

POD = {"metadata": {"name": "jupyter-alice", "labels": {"a": "b"}}, "spec": {"containers": []}}
NO_DRY_RUN = 'admission webhook "side.example.com" does not support dry run'
NO_RIGHT = 'pods is forbidden: User "hub" cannot create resource "pods" in API group ""'
FAILED = 'Internal error occurred: failed calling webhook "down.example.com": refused'


class Scripted(Client):
    """A client whose API server gives one answer, or fails."""

    def __init__(self, answer: object, status: int = 201) -> None:
        super().__init__()
        self._answer = answer
        self.status = status
        self.sent: list[tuple[str, Any, Any]] = []

    def say_as(self, other: Scripted) -> None:
        self._answer, self.status = other._answer, other.status

    async def post(self, path: str, query: Any, body: Any) -> tuple[int, bytes]:
        self.sent.append((path, query, body))
        if isinstance(self._answer, BaseException):
            raise self._answer
        if self._answer == "never":
            await asyncio.Event().wait()
        return self.status, json.dumps(self._answer).encode()


def says(status: int, message: str) -> Scripted:
    return Scripted({"kind": "Status", "message": message}, status)


async def test_the_pod_is_sent_with_a_generated_name() -> None:
    server = Scripted({"kind": "Pod", "spec": {"priority": 0}})

    admitted = await DryRun(server, 60).admit("jhub", POD)

    assert admitted == {"kind": "Pod", "spec": {"priority": 0}}
    [(path, query, sent)] = server.sent
    assert path == "/api/v1/namespaces/jhub/pods"
    assert sent["metadata"] == {"generateName": "jupyter-alice-", "labels": {"a": "b"}}
    assert query == {"dryRun": "All"}
    assert POD["metadata"]["name"] == "jupyter-alice"


async def test_a_rejection_has_its_cause() -> None:
    text = 'pods "jupyter-alice-" is forbidden: no PriorityClass with name high was found'

    answer = await DryRun(says(403, text), 60).admit("jhub", POD)

    assert answer == Rejection(Of.POD, Missing("PriorityClass", "high"), text)


@pytest.mark.parametrize(
    "server",
    [
        Scripted(TimeoutError()),
        Scripted(RequestError("no route")),
        Scripted(["no object"]),
        says(400, NO_DRY_RUN),
        says(404, 'namespaces "jhub-alice" not found'),
        says(403, NO_RIGHT),
        says(429, "too many requests"),
        says(500, FAILED),
        says(503, ""),
    ],
    ids=lambda server: str(server._answer)[:40],
)
async def test_an_answer_that_says_nothing_about_the_pod_is_logged_once(server, caplog) -> None:
    dry_run = DryRun(server, 60)

    assert await dry_run.admit("jhub", POD) is None
    assert await dry_run.admit("jhub", POD) is None

    assert len(caplog.records) == 1
    assert "A dry run failed" in caplog.text


async def test_users_own_namespaces_that_are_not_there_yet_are_one_reason(caplog) -> None:
    server = says(404, 'namespaces "jhub-alice" not found')
    dry_run = DryRun(server, 60)

    await dry_run.admit("jhub-alice", POD)
    server.say_as(says(404, 'namespaces "jhub-bob" not found'))
    await dry_run.admit("jhub-bob", POD)

    assert [it.partition(": ")[2] for it in caplog.messages] == [
        'namespaces "jhub-alice" not found'
    ]


async def test_each_reason_is_logged(caplog) -> None:
    server = says(400, NO_DRY_RUN)
    dry_run = DryRun(server, 60)

    for failed in (says(400, NO_DRY_RUN), says(500, FAILED), says(400, NO_DRY_RUN)):
        server.say_as(failed)
        await dry_run.admit("jhub", POD)

    assert [NO_DRY_RUN in caplog.messages[0], FAILED in caplog.messages[1]] == [True, True]
    assert len(caplog.records) == 2


@pytest.mark.each_python
async def test_a_dry_run_that_takes_too_long_has_no_answer() -> None:
    assert await DryRun(Scripted("never"), 0.01).admit("jhub", POD) is None


async def test_a_pod_without_a_spec_is_neither_sent_nor_logged(caplog) -> None:
    server = Scripted({})

    assert await DryRun(server, 60).admit("jhub", {"spec": None}) is None
    assert not server.sent
    assert not caplog.records


async def test_an_unreachable_api_server_gives_no_answer() -> None:
    async def nowhere() -> Configuration:
        return Configuration(host="http://127.0.0.1:9")

    client = Client(nowhere)

    assert await DryRun(client, 60).admit("jhub", POD) is None
    await client.close()


SENT: dict[str, Any] = {
    "metadata": {"name": "jupyter-alice"},
    "spec": {
        "containers": [{"name": "notebook", "resources": {"limits": {"memory": "1024Mi"}}}],
        "tolerations": [{"key": "hub.jupyter.org/dedicated", "operator": "Exists"}],
    },
}


def admitted() -> dict[str, Any]:
    """Return what a plain cluster's dry run returns: defaults, and a generated name."""
    pod = deepcopy(SENT)
    pod["metadata"] = {"name": "jupyter-alice-x7k2p", "generateName": "jupyter-alice-"}
    spec = pod["spec"]
    spec["containers"][0]["resources"] = {
        "limits": {"memory": "1Gi"},
        "requests": {"memory": "1Gi"},
    }
    spec["priority"] = 0
    spec["schedulerName"] = "default-scheduler"
    for condition in ("not-ready", "unreachable"):
        spec["tolerations"].append(
            {
                "key": f"node.kubernetes.io/{condition}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
        )
    return pod


def test_defaults_that_every_pod_gets_change_nothing() -> None:
    assert not changes(SENT, admitted())
    assert not added_tolerations(SENT, admitted())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("nodeSelector", {"pool": "a"}),
        ("affinity", {"nodeAffinity": {}}),
        ("overhead", {"memory": "1Mi"}),
        ("priorityClassName", "high"),
        ("runtimeClassName", "nvidia"),
        ("schedulerName", "other"),
        ("tolerations", [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]),
        ("tolerations", []),
        ("topologySpreadConstraints", [{"maxSkew": 1}]),
        ("initContainers", [{"name": "side"}]),
        ("containers", [{"name": "notebook", "resources": {"limits": {"memory": "2Gi"}}}]),
        ("containers", [{"name": "notebook", "resources": {"requests": {"memory": "oops"}}}]),
    ],
)
def test_a_field_that_the_scheduler_uses_counts_as_a_change(name, value) -> None:
    pod = admitted()
    pod["spec"][name] = value

    assert changes(SENT, pod)


@pytest.mark.each_python
@pytest.mark.parametrize("broken", [None, [], {"spec": []}, {"spec": {"containers": [None, 3]}}])
def test_undecodable_pods_can_be_compared(broken) -> None:
    assert changes(SENT, broken)
    assert not changes(broken, broken)
    assert added_tolerations(SENT, broken) == ()
