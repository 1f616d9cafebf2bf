"""What a dry run sends, and how it reads each answer; tests/cluster has a real API server."""

import asyncio
import json
from copy import deepcopy

import pytest

from gpuspawner.cluster.client import Client, RequestError
from gpuspawner.preflight.dry_runs import DryRun, added_tolerations, changes
from gpuspawner.preflight.rejection import Missing, Of, Rejection

POD = {"metadata": {"name": "jupyter-alice", "labels": {"a": "b"}}, "spec": {"containers": []}}
NO_DRY_RUN = 'admission webhook "side.example.com" does not support dry run'
NO_RIGHT = 'pods is forbidden: User "hub" cannot create resource "pods" in API group ""'
FAILED = 'Internal error occurred: failed calling webhook "down.example.com": refused'


class Scripted(Client):
    """A client whose API server gives one answer, or fails."""

    def __init__(self, answer, status=201):
        super().__init__()
        self._answer = answer
        self.status = status
        self.sent = []

    def say_as(self, other):
        self._answer, self.status = other._answer, other.status

    async def post(self, path, query, body):
        self.sent.append((path, query, body))
        if isinstance(self._answer, BaseException):
            raise self._answer
        if self._answer == "never":
            await asyncio.Event().wait()
        return self.status, json.dumps(self._answer).encode()


def says(status, message):
    return Scripted({"kind": "Status", "message": message}, status)


async def test_the_pod_is_sent_with_a_generated_name():
    server = Scripted({"kind": "Pod", "spec": {"priority": 0}})

    admitted = await DryRun(server, 60).admit("jhub", POD)

    assert admitted == {"kind": "Pod", "spec": {"priority": 0}}
    [(path, query, sent)] = server.sent
    assert path == "/api/v1/namespaces/jhub/pods"
    assert sent["metadata"] == {"generateName": "jupyter-alice-", "labels": {"a": "b"}}
    assert query == {"dryRun": "All"}
    assert POD["metadata"]["name"] == "jupyter-alice"


async def test_a_rejection_has_its_cause():
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
async def test_an_answer_that_says_nothing_about_the_pod_is_logged_once(server, caplog):
    dry_run = DryRun(server, 60)

    assert await dry_run.admit("jhub", POD) is None
    assert await dry_run.admit("jhub", POD) is None

    assert len(caplog.records) == 1
    assert "A dry run failed" in caplog.text


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (
            [says(404, f'namespaces "jhub-{it}" not found') for it in ("alice", "bob")],
            ['namespaces "jhub-alice" not found'],
        ),
        ([says(400, NO_DRY_RUN), says(500, FAILED), says(400, NO_DRY_RUN)], [NO_DRY_RUN, FAILED]),
    ],
    ids=["users' own namespaces that aren't there yet", "others"],
)
async def test_each_reason_is_logged_once(answers, said, caplog):
    server = Scripted(None)
    dry_run = DryRun(server, 60)

    for answer in answers:
        server.say_as(answer)
        await dry_run.admit("jhub", POD)

    assert [it.partition(" to them: ")[2] for it in caplog.messages] == said


@pytest.mark.each_python
async def test_a_dry_run_that_takes_too_long_has_no_answer():
    assert await DryRun(Scripted("never"), 0.01).admit("jhub", POD) is None


SENT = {
    "metadata": {"name": "jupyter-alice"},
    "spec": {
        "containers": [{"name": "notebook", "resources": {"limits": {"memory": "1024Mi"}}}],
        "tolerations": [{"key": "hub.jupyter.org/dedicated", "operator": "Exists"}],
    },
}


def admitted():
    """Return what a plain cluster's dry run returns: defaults, and a generated name."""
    pod = deepcopy(SENT)
    pod["metadata"] = {"name": "jupyter-alice-x7k2p", "generateName": "jupyter-alice-"}
    memory = {"memory": "1Gi"}
    pod["spec"]["containers"][0]["resources"] = {"limits": memory, "requests": memory}
    pod["spec"] |= {"priority": 0, "schedulerName": "default-scheduler"}
    for condition in ("not-ready", "unreachable"):
        added = {"key": f"node.kubernetes.io/{condition}", "operator": "Exists"}
        added |= {"effect": "NoExecute", "tolerationSeconds": 300}
        pod["spec"]["tolerations"].append(added)
    return pod


def test_defaults_that_every_pod_gets_change_nothing():
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
def test_a_field_that_the_scheduler_uses_counts_as_a_change(name, value):
    pod = admitted()
    pod["spec"][name] = value

    assert changes(SENT, pod)


@pytest.mark.each_python
@pytest.mark.parametrize("broken", [None, [], {"spec": []}, {"spec": {"containers": [None, 3]}}])
def test_undecodable_pods_can_be_compared(broken):
    assert changes(SENT, broken)
    assert not changes(broken, broken)
    assert added_tolerations(SENT, broken) == ()
