"""We refuse what the real Kueue could never admit, and nothing else, in random cohorts."""

from __future__ import annotations

import random
from typing import Any

import pytest

from gpuspawner.kueue.queues import Queues
from gpuspawner.preflight.kueue import Never
from gpuspawner.scheduling.state import ClusterState
from localcluster import LocalCluster
from localcluster.kueue.objects import API, QUEUE_LABEL, cluster_queue, local_queue, resource_flavor
from localcluster.kueue.running import RunningKueue
from tests.localcluster.seen import gpu_pod
from tests.unit.makers.kueue_worlds import GPU, known, pod
from tests.waiting import wait_for

KINDS = ("localqueues", "clusterqueues", "cohorts", "resourceflavors", "workloads")
TEAMS = ("team-a", "team-b", "team-c")


class World:
    """Three teams in a cohort of two levels, with random quotas and limits."""

    def __init__(self, cluster: LocalCluster, namespace: str, seed: int) -> None:
        self.api = cluster.api
        self.namespace = namespace
        self.random = random.Random(seed)
        self.api.create(f"{API}/resourceflavors", resource_flavor("t4"))
        self._cohort("upper", "")
        self._cohort("lower", "upper")
        for team, cohort in zip(TEAMS, ("lower", "lower", "upper"), strict=True):
            flavors = {"t4": {GPU: self._quota()}}
            made = cluster_queue(team, flavors, cohortName=cohort)
            self.api.create(f"{API}/clusterqueues", made)
            queues = f"{API}/namespaces/{namespace}/localqueues"
            self.api.create(queues, local_queue(team, namespace, team))
        wait_for(self._is_active)

    def _quota(self) -> dict[str, str]:
        nominal = self.random.randint(0, 5)
        limits = {"borrowingLimit": 4, "lendingLimit": nominal}
        chosen = {it: most for it, most in limits.items() if self.random.random() < 0.5}
        drawn = {it: str(self.random.randint(0, most)) for it, most in chosen.items()}
        return {"nominalQuota": str(nominal), **drawn}

    def _cohort(self, name: str, parent: str) -> None:
        quota = self._quota() if parent else {"nominalQuota": str(self.random.randint(0, 3))}
        group = {
            "coveredResources": [GPU],
            "flavors": [{"name": "t4", "resources": [{"name": GPU, **quota}]}],
        }
        above = {"parentName": parent} if parent else {}
        spec = {**above, "resourceGroups": [group]}
        made = {"apiVersion": API[6:], "kind": "Cohort", "metadata": {"name": name}, "spec": spec}
        self.api.create(f"{API}/cohorts", made)

    def _is_active(self) -> bool:
        queues = self.api.items(f"{API}/localqueues")
        conditions = [it.get("status", {}).get("conditions") or [{}] for it in queues]
        return all(it[0].get("status") == "True" for it in conditions)

    def we_refuse(self, team: str, gpus: int) -> bool:
        """Whether we say that a pod could never be admitted."""
        kinds = {it: self.api.get(f"{API}/{it}") for it in KINDS}
        items = [
            {**it, "kind": found["kind"].removesuffix("List")}
            for found in kinds.values()
            for it in found["items"]
        ]
        queues = Queues(known(*items), ClusterState.from_objects(nodes=[], pods=[]))
        return isinstance(queues.ask(team, pod(gpus, namespace=self.namespace)), Never)

    def kueue_refuses(self, name: str, team: str, gpus: int) -> bool:
        """Whether Kueue says so of a pod; one that isn't admitted is deleted."""
        made = gpu_pod(name, gpus)
        made["metadata"]["labels"] = {QUEUE_LABEL: team}
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        uid = self.api.create(path, made)["metadata"]["uid"]
        found = wait_for(lambda: self._reserved(uid))
        if found["status"] == "True":
            return False
        self.api.delete(f"{path}/{name}", grace=0)
        wait_for(lambda: self._reserved(uid) is None)
        return "maximum capacity" in found["message"]

    def _reserved(self, uid: str) -> dict[str, Any] | None:
        for it in self.api.items(f"{API}/namespaces/{self.namespace}/workloads"):
            if it["metadata"]["ownerReferences"][0]["uid"] == uid:
                conditions = it.get("status", {}).get("conditions", [])
                return next((one for one in conditions if one["type"] == "QuotaReserved"), None)
        return None


@pytest.mark.parametrize(
    "seed",
    [0, *(pytest.param(it, marks=pytest.mark.nightly("one more world")) for it in range(1, 6))],
)
def test_we_refuse_the_pods_that_kueue_could_never_admit_and_no_others(
    cluster: LocalCluster, namespace: str, kueue: RunningKueue, seed: int
) -> None:
    kueue.process.check()
    world = World(cluster, namespace, seed)
    for number in range(10):
        team, gpus = world.random.choice(TEAMS), world.random.randint(1, 4)
        ours = world.we_refuse(team, gpus)
        theirs = world.kueue_refuses(f"pod-{number}", team, gpus)
        assert ours == theirs, (number, team, gpus)
