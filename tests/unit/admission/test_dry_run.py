"""What a dry run sends, and what is made of each answer; tests/cluster has a real API server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from kubernetes_asyncio import client

from gpuspawner.admission.dry_run import DryRun
from gpuspawner.admission.rejection import Missing, Of, Rejection

POD = {"metadata": {"name": "jupyter-alice", "labels": {"a": "b"}}, "spec": {"containers": []}}
NO_DRY_RUN = 'admission webhook "side.example.com" does not support dry run'
FAILED = 'Internal error occurred: failed calling webhook "down.example.com": refused'


class Scripted:
    """An API server that gives one answer, or fails."""

    def __init__(self, answer: object, status: int = 201) -> None:
        self._answer = answer
        self.status = status
        self.sent: list[tuple[str, Any, dict[str, Any]]] = []

    async def create_namespaced_pod(self, namespace: str, pod: Any, **options: Any) -> Scripted:
        self.sent.append((namespace, pod, options))
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self

    async def read(self) -> bytes:
        if self._answer == "never":
            await asyncio.Event().wait()
        return json.dumps(self._answer).encode()


def says(status: int, message: str) -> Scripted:
    return Scripted({"kind": "Status", "message": message}, status)


async def test_the_pod_is_sent_under_a_name_that_nobody_has() -> None:
    server = Scripted({"kind": "Pod", "spec": {"priority": 0}})

    admitted = await DryRun(60).admit(server, "jhub", POD)

    assert admitted == {"kind": "Pod", "spec": {"priority": 0}}
    [(namespace, sent, options)] = server.sent
    assert namespace == "jhub"
    assert sent["metadata"] == {"generateName": "jupyter-alice-", "labels": {"a": "b"}}
    assert options["dry_run"] == "All"
    assert POD["metadata"]["name"] == "jupyter-alice"


async def test_a_no_comes_with_its_cause() -> None:
    text = 'pods "jupyter-alice-" is forbidden: no PriorityClass with name high was found'

    answer = await DryRun(60).admit(says(403, text), "jhub", POD)

    assert answer == Rejection(Of.POD, Missing("PriorityClass", "high"), text)


@pytest.mark.parametrize(
    "server",
    [
        Scripted(TimeoutError()),
        Scripted(OSError("no route")),
        Scripted(client.ApiException(status=0, reason="unsendable")),
        Scripted(["no object"]),
        says(400, NO_DRY_RUN),
        says(404, 'namespaces "jhub-alice" not found'),
        says(429, "too many requests"),
        says(500, FAILED),
        says(503, ""),
    ],
    ids=lambda server: str(server._answer)[:40],
)
async def test_whatever_says_nothing_about_the_pod_is_logged_once(
    server: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    dry_run = DryRun(60)

    assert await dry_run.admit(server, "jhub", POD) is None
    assert await dry_run.admit(server, "jhub", POD) is None

    assert len(caplog.records) == 1
    assert "No dry run could be had" in caplog.text


async def test_each_reason_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    dry_run = DryRun(60)

    for server in (says(400, NO_DRY_RUN), says(500, FAILED), says(400, NO_DRY_RUN)):
        await dry_run.admit(server, "jhub", POD)

    assert [NO_DRY_RUN in caplog.messages[0], FAILED in caplog.messages[1]] == [True, True]
    assert len(caplog.records) == 2


async def test_an_answer_that_does_not_come_is_not_waited_for() -> None:
    assert await DryRun(0.01).admit(Scripted("never"), "jhub", POD) is None


@pytest.mark.parametrize(
    ("api", "pod"), [(None, POD), (Scripted({}), {"spec": None})], ids=["no way", "no pod yet"]
)
async def test_where_there_is_nothing_to_ask_nothing_is_said(
    api: Scripted | None, pod: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    assert await DryRun(60).admit(api, "jhub", pod) is None
    assert not caplog.records


@pytest.fixture
async def nowhere() -> AsyncIterator[client.CoreV1Api]:
    """KubeSpawner's own client before a port on which nobody listens."""
    configuration = client.Configuration()
    configuration.host = "http://127.0.0.1:9"
    async with client.ApiClient(configuration) as connection:
        yield client.CoreV1Api(connection)


async def test_an_api_server_that_is_away_says_nothing(nowhere: client.CoreV1Api) -> None:
    assert await DryRun(60).admit(nowhere, "jhub", POD) is None
