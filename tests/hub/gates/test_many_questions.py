"""A user who asks again and again whether something is available blocks no other user."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http import HTTPStatus
from itertools import count

import requests

from gpuspawner.web.rate_limits import PAUSE
from localcluster import LocalCluster
from tests.fixtures.cluster import AddNodes
from tests.hub.configurations import T4, t4_nodes
from tests.hub.conftest import StartGPUHub
from tests.hub.people import Person
from tests.hub.running import RunningHub
from tests.servers.webhooks import Object, Webhooks, configured, patched
from tests.waiting import wait_for

# KubeSpawner has 100 connections for the whole hub.
LOOPS = 120
NO = {"accelerator": "t4", "gpus": 2}


class SlowWebhook:
    """Changes every pod, and answers slowly for one user's pods.

    Attributes:
        most: The most pods of that user that it had at the same time.
    """

    def __init__(self, person: str, webhooks: Webhooks) -> None:
        self._person = person
        self._released = webhooks.released
        self._lock = threading.Lock()
        self._numbers = count()
        self._now = Counter[str]()
        self._is_called = False
        self.most = 0

    def is_called(self, cluster: LocalCluster, namespace: str) -> bool:
        """Let the API server try a pod of nobody's; return whether it has called this by now."""
        anywhere = {"operator": "Exists"}
        pod = {
            "metadata": {"name": "nobody-s", "labels": {"hub.jupyter.org/username": "nobody"}},
            "spec": {"containers": [{"name": "a", "image": "a"}], "tolerations": [anywhere]},
        }
        cluster.api.create(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod)
        return self._is_called

    def __call__(self, pod: Object) -> Object:
        self._is_called = True
        person = pod["metadata"]["labels"]["hub.jupyter.org/username"]
        if person == self._person:
            with self._counted():
                self._released.wait(1.8)
        key = f"example.com/{next(self._numbers)}"
        value = [*pod["spec"]["tolerations"], {"key": key, "operator": "Exists"}]
        return patched({"op": "replace", "path": "/spec/tolerations", "value": value})

    @contextmanager
    def _counted(self) -> Iterator[None]:
        with self._lock:
            self._now["pods"] += 1
            self.most = max(self.most, self._now["pods"])
        try:
            yield
        finally:
            with self._lock:
                self._now["pods"] -= 1


def ask(person: Person) -> requests.Response:
    url = f"{person.hub.url}/hub/gpuspawner/decision/{person.name}/"
    headers = {"X-XSRFToken": person.xsrf, "Connection": "close"}
    return person.session.post(url, json=NO, headers=headers)


def starts(hub: RunningHub, user: str) -> None:
    hub.start_until_ready(user, {"accelerator": "t4"})
    hub.stop(user)


def test_120_questions_of_one_user_take_one_connection_of_their_own(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes, webhooks: Webhooks, cluster: LocalCluster
) -> None:
    add_nodes(t4_nodes(1, 1))
    slow = webhooks.answers["slow"] = SlowWebhook("mallory", webhooks)
    with start_gpu_hub(T4) as hub:  # another one may have kept what the API server said before
        _ask_120_times(hub, slow, webhooks, cluster)


def _ask_120_times(
    hub: RunningHub, slow: SlowWebhook, webhooks: Webhooks, cluster: LocalCluster
) -> None:
    configuration = webhooks.configuration(hub.pods.namespace, "slow", "Mutating")
    mallory = hub.person("mallory")
    mallory.open("/hub/home")
    with configured(cluster, configuration), ThreadPoolExecutor(LOOPS) as at_once:
        # Not by mallory's questions: the hub would keep an answer from before.
        wait_for(lambda: slow.is_called(cluster, hub.pods.namespace))
        answers: list[requests.Response] = []

        def is_asked() -> bool:
            """Ask; on a slow machine, the hub's dry run of a pod may have no answer in time."""
            asked = [at_once.submit(ask, mallory) for _ in range(LOOPS)]
            starts(hub, "other")
            answers.extend(each.result() for each in asked)
            return slow.most > 0

        wait_for(is_asked)

    assert slow.most == 1
    assert hub.lives
    assert "Traceback" not in hub.log
    refused = [it for it in answers if it.status_code != HTTPStatus.OK]
    assert {it.status_code for it in refused} <= {HTTPStatus.TOO_MANY_REQUESTS}
    assert {it.headers["Retry-After"] for it in refused} <= {"10"}
    # The hub answers slowly if a user asks again at once.
    assert all(it.elapsed.total_seconds() >= PAUSE for it in refused)
