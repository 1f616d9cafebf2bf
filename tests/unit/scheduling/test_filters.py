"""Pods that are added to a node or taken from it count with all that they have."""

from __future__ import annotations

from typing import Any

import pytest

from gpuspawner.scheduling import Outcome, evaluate
from tests.unit.makers.objects import affinity, answer, cluster, node, pod, term
from tests.unit.makers.storage import WAIT, claim, uses, volume

Plain = dict[str, Any]

DISK = {"volumes": [{"name": "d", "gcePersistentDisk": {"pdName": "x"}}]}
INLINE, ANOTHER = (
    {"volumes": [{"name": it, "awsElasticBlockStore": {"volumeID": it}}]} for it in "ef"
)
PORT = {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]}
AWAY = affinity(away=[term({"app": "x"}, "kubernetes.io/hostname")])
EVEN = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "minDomains": 2,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "x"}},
        }
    ]
}


def volumes(*given: Plain) -> Plain:
    return {"volumes": [volume for each in given for volume in each["volumes"]]}


def storage(mode: str = "ReadWriteOnce") -> Plain:
    """Claims one and two, and a node that can attach one volume of each driver."""
    names = ("one", "two")
    drivers = ("csi", "ebs.csi.aws.com")
    limits = [{"name": it, "nodeID": "a", "allocatable": {"count": 1}} for it in drivers]
    return {
        "persistentVolumeClaims": [claim(it, volume=f"v-{it}", modes=(mode,)) for it in names],
        "persistentVolumes": [
            volume(f"v-{it}", claim=it, csi={"driver": "csi", "volumeHandle": it}) for it in names
        ],
        "storageClasses": [WAIT],
        "csiNodes": [{"metadata": {"name": "a"}, "spec": {"drivers": limits}}],
    }


ONE_POD = storage("ReadWriteOncePod")

IN_EACH_OTHER_S_WAY = {
    "a disk": (DISK, DISK, {}),
    "a host port": (PORT, PORT, {}),
    "a claim for one pod, beside a disk": (volumes(DISK, uses("one")), uses("one"), ONE_POD),
    "one volume more than the node can attach": (uses("one"), uses("two"), storage()),
    "one inline volume more": (INLINE, ANOTHER, storage()),
    "the new pod's anti-affinity": (AWAY, {}, {}),
    "the new pod's even spread": (EVEN, {}, {}),
}
PAIRS = pytest.mark.parametrize(
    ("mine", "theirs", "objects"), IN_EACH_OTHER_S_WAY.values(), ids=IN_EACH_OTHER_S_WAY.keys()
)


@PAIRS
def test_a_pod_that_preempted_others_keeps_what_it_will_use_of_its_node(
    mine, theirs, objects
) -> None:
    """It isn't there yet, because its victims are still ending: it is nominated."""
    status = {"nominatedNodeName": "a"}
    waits = pod("waits", labels={"app": "x"}, status=status, **theirs)
    new = pod(labels={"app": "x"}, **mine)

    assert answer(new, node(), **objects).feasible == ("a",)
    assert answer(new, node(), pods=[waits], **objects).feasible == ()
    assert answer(new, node(), node("b"), pods=[waits], **objects).feasible == ("b",)


@pytest.mark.parametrize("first", ["0", "1", "2"])
def test_pods_that_ask_for_other_devices_are_judged_as_if_they_were_alone(first: str) -> None:
    """What the static rules say is kept for all pods with the same requirements."""
    nodes = node("a", gpu="1"), node("b"), node("c", gpu="2")
    there = [pod("old", node="c", requests={"gpu": "2"})]
    state = cluster(*nodes, pods=there)
    evaluate(state, pod(requests={"gpu": first}))

    for amount in ("0", "1", "2", "4"):
        asks = pod(requests={"gpu": amount})
        assert evaluate(state, asks) == answer(asks, *nodes, pods=there)


@PAIRS
def test_preemption_frees_what_its_victims_use_of_their_node(mine, theirs, objects) -> None:
    old = pod("old", node="a", labels={"app": "x"}, priority=0, **theirs)
    new = {"labels": {"app": "x"}, **mine}

    assert answer(pod(**new, priority=0), node(), pods=[old], **objects).outcome is Outcome.BUSY
    verdict = answer(pod(**new, priority=1), node(), pods=[old], **objects)
    assert verdict.outcome is Outcome.FITS_AFTER_PREEMPTION
