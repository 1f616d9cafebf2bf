"""Attempts on limits: to lock others out of theirs, and to get out of one's own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import requests

from gpuspawner.kube.servers import GRANT, SERVER, USER
from localcluster import Fleet, LocalCluster, NodeGroup, Pods
from tests.hub.running import RunningHub, running_hub
from tests.servers import single_user

FORGED = 200
"""How many pods Mallory creates in her own namespace."""
_NAMESPACE = "limits"
_GPU = "nvidia.com/gpu"
_ROOM = {"cpu": "32", "memory": "64Gi", "pods": "110", _GPU: "16"}
_CONFIGURATION = f"""
import gpuspawner
c.KubeSpawner.namespace = {_NAMESPACE!r}
c.KubeSpawner.enable_user_namespaces = True
c.KubeSpawner.user_namespace_template = "{_NAMESPACE}-{{username}}"
c.KubeSpawner.cmd = {single_user.COMMAND!r}
c.KubeSpawner.delete_grace_period = 0
c.KubeSpawner.start_timeout = 60
c.JupyterHub.tornado_settings = {{"slow_spawn_timeout": 60}}
c.JupyterHub.allow_named_servers = True
c.JupyterHub.cleanup_servers = False
c.JupyterHub.load_groups = {{
    "course": {{"users": ["alice", "bob"]}}, "seminar": {{"users": ["carol", "dave"]}}}}
c.GPUSpawner.accelerators = {{"t4": {{
    "display_name": "T4", "counts": [1, 2], "node_selector": {{"gpu": "t4"}}}}}}
c.GPUSpawner.policies = {{
    "two": {{"gpus_per_user": 2}},
    "shared": {{"groups": ["course", "seminar"], "gpus_per_group": 4}}}}
gpuspawner.configure(c)
"""


def attack(folder: Path, seed: int) -> list[str]:
    """Make all attempts on a hub with a namespace for each user; return those that succeeded."""
    fleet = Fleet((NodeGroup("t4", 1, _ROOM, {"gpu": "t4"}),))
    with LocalCluster(folder / "cluster", pods=Pods.RUN) as cluster:
        cluster.add_nodes(fleet)
        cluster.api.create("/api/v1/namespaces", {"metadata": {"name": _NAMESPACE}})
        (folder / "hub").mkdir()
        environment = {"KUBECONFIG": str(cluster.kubeconfig)}
        with running_hub(folder / "hub", _CONFIGURATION, environment=environment) as hub:
            hub.until_it_sees_the_cluster()
            attempts = Attempts(hub, cluster, Random(seed))
            return [*attempts.forge_pods(), *attempts.edit_grants(), *attempts.rename()]


class Attempts:
    """The attempts, each of which yields what went wrong.

    Alice and Bob share four GPUs in a course, Carol and Dave in a seminar.
    """

    def __init__(self, hub: RunningHub, cluster: LocalCluster, random: Random) -> None:
        self._hub = hub
        self._cluster = cluster
        self._random = random

    def forge_pods(self) -> Iterator[str]:
        """Let Mallory fill a namespace of her own with pods in the names of others."""
        self._cluster.api.create("/api/v1/namespaces", {"metadata": {"name": "mallory"}})
        for number in range(FORGED):
            self._cluster.api.create("/api/v1/namespaces/mallory/pods", self._forged(number))
        for user in ("carol", "dave"):
            yield from self._start(user, "train", 2, "although only forged pods are in the way")

    def _forged(self, number: int) -> dict[str, object]:
        """Return a Pending pod with eight GPUs that is said to be somebody's."""
        user = self._random.choice(["carol", "dave"])
        names = {USER: user, SERVER: self._random.choice(["", "train"])}
        grant = {"accelerator": "t4", "policies": ["two", "shared"], "groups": ["seminar"]}
        written = {"annotations": {**names, GRANT: json.dumps(grant)}}
        labelled = {"labels": {"component": "singleuser-server", **names}}
        said = self._random.choice([written, labelled, {**written, **labelled}])
        own = ("jupyter-carol", "jupyter-carol--train", "jupyter-dave", "jupyter-dave--train")
        name = own[number] if number < len(own) else f"jupyter-{user}--{number}"
        container = {"name": "notebook", "image": "x", "resources": {"limits": {_GPU: "8"}}}
        spec = {"containers": [container], "nodeSelector": {"no": "where"}}
        return {"metadata": {"name": name, **said}, "spec": spec}

    def edit_grants(self) -> Iterator[str]:
        """Let servers change their own pods, as their service accounts may be allowed to."""
        for user, server in (("alice", "train"), ("bob", "train"), ("mallory", "lab")):
            yield from self._start(user, server, 2, "although nothing is in the way")
        self._edit("mallory", "lab", '{"policies":["shared"],"groups":["course"]}')
        self._edit("alice", "train", "{}")
        self._hub.api("DELETE", "/groups/course/users", {"users": ["alice"]})
        self._hub.api("POST", "/users/eve")
        self._hub.api("POST", "/groups/course/users", {"users": ["eve"]})
        for user in ("alice", "eve", "mallory"):
            yield from self._be_refused(user, "more", "after grants were edited")
        self._hub.api("DELETE", "/users/bob/servers/train")
        yield from self._start("eve", "train", 2, "although only a forged grant is in the way")

    def _edit(self, user: str, server: str, grant: str) -> None:
        path = f"/api/v1/namespaces/{_NAMESPACE}-{user}/pods/jupyter-{user}--{server}"
        annotations = {GRANT: grant, USER: "nobody", SERVER: "other"}
        metadata = {"annotations": annotations, "labels": {USER: "nobody", SERVER: "other"}}
        self._cluster.api.patch(path, {"metadata": metadata})

    def rename(self) -> Iterator[str]:
        """Rename people whose servers run, who then ask for more, also after a restart."""
        for old in ("eve", "mallory"):
            self._hub.api("PATCH", f"/users/{old}", {"name": f"{old}-2"}).raise_for_status()
        yield from self._ask_for_more("at once")
        self._hub.kill()
        self._hub.begin()
        self._hub.until_it_serves()
        yield from self._ask_for_more("after a restart")
        yield from self._start("mallory", "new", 2, "although only the name was somebody's before")

    def _ask_for_more(self, when: str) -> Iterator[str]:
        for user in ("eve-2", "mallory-2"):
            yield from self._be_refused(user, "more", f"under a new name, {when}")

    def _start(self, user: str, server: str, gpus: int, although: str) -> Iterator[str]:
        answer = self._ask(user, server, gpus)
        if answer.status_code not in (201, 202):
            yield f"{user} gets nothing, {although}: {answer.status_code} {answer.text}"

    def _be_refused(self, user: str, server: str, when: str) -> Iterator[str]:
        answer = self._ask(user, server, 1)
        if answer.status_code != 409:
            yield f"{user} gets more than the limits allow, {when}: {answer.status_code}"

    def _ask(self, user: str, server: str, gpus: int) -> requests.Response:
        self._hub.api("POST", f"/users/{user}")
        options = {"accelerator": "t4", "gpus": gpus}
        return self._hub.api("POST", f"/users/{user}/servers/{server}", options)
