"""Hubs that are handed from test to test, each as if it had just been started.

A hub's start takes a second of processor time, and most tests don't change the hub itself.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import requests

from localcluster import LocalCluster
from localcluster.client import Object
from tests.hub.running import RunningHub
from tests.hub.state_page import SEEN
from tests.waiting import wait_for

LendHub = Callable[[str], RunningHub]

_MOST = 3
"""How many hubs a worker keeps; a test seldom needs more than one."""
_WITH_THE_PAGE = """
from tests.hub.state_page import StatePage
c.JupyterHub.extra_handlers = [("/tests/state", StatePage)]
"""
_SERVER = {"component": "singleuser-server"}
_RULES = ("limitranges", "resourcequotas")


class KeptHub:
    """A hub that several tests have, one after the other.

    Args:
        start: Runs a hub with a configuration.
        cluster: Its cluster.
        configuration: Its configuration.
    """

    def __init__(
        self,
        start: Callable[[str], AbstractContextManager[RunningHub]],
        cluster: LocalCluster,
        configuration: str,
    ) -> None:
        self._cluster = cluster
        self._running = ExitStack()
        self.hub = self._running.enter_context(start(configuration + _WITH_THE_PAGE))
        self._groups = self._members()
        self._first_users = {it["name"] for it in self._users()} - set().union(
            *self._groups.values()
        )

    def begin(self) -> RunningHub:
        """Hand it to a test, as soon as it sees the cluster as it is now."""
        self.hub.begin_test()
        version = secrets.token_hex(4)
        for node in self._cluster.api.items("/api/v1/nodes"):
            path = f"/api/v1/nodes/{node['metadata']['name']}"
            self._cluster.api.patch(path, {"metadata": {"annotations": {SEEN: version}}})
        wait_for(lambda: self._sees_all(version))
        requests.post(self._state_url, timeout=60).raise_for_status()
        return self.hub

    def finish(self) -> list[str]:
        """Stop the servers and delete the users of a test; return what else it has left."""
        errors = self.hub.unexpected_errors()
        if not self.hub.lives:
            return ["the hub has ended", *errors]
        self._stop_servers()
        self._delete_users()
        orphans = self._pods_of_servers()
        self._cluster.api.delete(self.hub.pods.path, grace=0)
        try:
            wait_for(lambda: not self._promises())
        except TimeoutError:
            errors.append(f"the hub still has {self._promises()}")
        orphaned = (f"the pod {name} of a stopped server" for name in orphans)
        return [*errors, *orphaned, *self._rules()]

    @property
    def can_be_handed_on(self) -> bool:
        """Whether no test has killed or reconfigured it."""
        return self.hub.lives and self.hub.is_as_configured

    def end(self) -> None:
        """End it, and leave nothing of it."""
        self._running.close()

    def _sees_all(self, version: str) -> bool:
        told, api = self._state(), self._cluster.api
        pods = api.items("/api/v1/pods")
        running = [it for it in pods if it["status"].get("phase") not in ("Succeeded", "Failed")]
        return (
            _places(running) <= set(told["pods"]) <= _places(pods)
            and set(told["nodes"].values()) <= {version}
            and set(told["nodes"]) == {it["metadata"]["name"] for it in api.items("/api/v1/nodes")}
        )

    def _promises(self) -> dict[str, object]:
        """What is promised to servers, although all have been stopped."""
        state, namespace = self._state(), self.hub.pods.namespace
        mine = [it for it in state["pods"] if it.startswith(f"{namespace}/")]
        kept = {name: state[name] for name in ("promises", "in line")}
        return {name: it for name, it in {**kept, "pods in its view": mine}.items() if it}

    def _rules(self) -> list[str]:
        """What the namespace has that would change how the pods of the next test are judged."""
        path = f"/api/v1/namespaces/{self.hub.pods.namespace}"
        left = [(kind, it) for kind in _RULES for it in self._cluster.api.items(f"{path}/{kind}")]
        return [f"{kind}/{it['metadata']['name']}" for kind, it in left]

    def _stop_servers(self) -> None:
        active = [(user["name"], name) for user in self._users() for name in user["servers"]]
        with ThreadPoolExecutor(8) as at_once:
            list(at_once.map(lambda it: self._stop(*it), active))
        wait_for(lambda: not any(it["pending"] for it in self._servers()))

    def _servers(self) -> list[dict[str, Any]]:
        return [server for user in self._users() for server in user["servers"].values()]

    def _stop(self, user: str, server: str) -> None:
        self.hub.api(
            "DELETE", f"/users/{user}/servers/{server}" if server else f"/users/{user}/server"
        )

    def _delete_users(self) -> None:
        """Delete those whom the test has made, or whose groups it may have changed.

        That ends what the hub still takes for a server if a start that was stopped needed more than
        a second to end (JupyterHub's ``apihandlers/users.py``), as on a machine that stalls.
        """
        for user in {it["name"] for it in self._users()} - self._first_users:
            self.hub.api("DELETE", f"/users/{user}")
        wait_for(lambda: not self._servers())
        for group, members in self._groups.items():
            for user in members:
                self.hub.api("POST", f"/users/{user}")
            self.hub.api("POST", f"/groups/{group}/users", {"users": sorted(members)})

    def _pods_of_servers(self) -> list[str]:
        labelled = (it["metadata"] for it in self.hub.pods.all())
        return [it["name"] for it in labelled if it.get("labels", {}).items() >= _SERVER.items()]

    def _users(self) -> list[dict[str, Any]]:
        users: list[dict[str, Any]] = self.hub.api("GET", "/users").json()
        return users

    def _members(self) -> dict[str, set[str]]:
        groups = self.hub.api("GET", "/groups").json()
        return {it["name"]: set(it["users"]) for it in groups}

    def _state(self) -> dict[str, Any]:
        told: dict[str, Any] = requests.get(self._state_url, timeout=60).json()
        return told

    @property
    def _state_url(self) -> str:
        return f"{self.hub.direct}/hub/tests/state"


def _places(pods: list[Object]) -> set[str]:
    return {f"{it['metadata']['namespace']}/{it['metadata']['name']}" for it in pods}


class Keeper:
    """Keeps the hubs of the last few configurations.

    Args:
        start: Runs a hub with a configuration.
        cluster: The cluster of all.
    """

    def __init__(
        self, start: Callable[[str], AbstractContextManager[RunningHub]], cluster: LocalCluster
    ) -> None:
        self._start = start
        self._cluster = cluster
        self._kept: OrderedDict[str, KeptHub] = OrderedDict()

    @contextmanager
    def lending(self) -> Iterator[LendHub]:
        """Yield what lends hubs to one test; then take them back.

        Raises:
            AssertionError: The test has left something.
        """
        lent: dict[str, RunningHub] = {}

        def lend(configuration: str) -> RunningHub:
            if configuration not in lent:
                lent[configuration] = self._hub_of(configuration).begin()
            return lent[configuration]

        yield lend
        left = [it for configuration in lent for it in self._take_back(configuration)]
        assert not left, "The test has left: " + "\n".join(left)

    def end(self) -> None:
        """End all."""
        while self._kept:
            self._kept.popitem()[1].end()

    def _hub_of(self, configuration: str) -> KeptHub:
        if configuration not in self._kept:
            while len(self._kept) >= _MOST:
                self._kept.popitem(last=False)[1].end()
            self._kept[configuration] = KeptHub(self._start, self._cluster, configuration)
        self._kept.move_to_end(configuration)
        return self._kept[configuration]

    def _take_back(self, configuration: str) -> list[str]:
        kept = self._kept[configuration]
        left = ["a hub that nobody has stopped"]
        try:
            left = kept.finish()
        finally:
            if left or not kept.can_be_handed_on:
                self._kept.pop(configuration).end()
        return left
