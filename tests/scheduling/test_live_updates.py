"""After any updates, a state gives the same verdicts as a new state with the same objects."""

import copy
import json
import random

import pytest

from gpuspawner.kube.objects import KINDS, convert
from gpuspawner.scheduling import ClusterState, explain
from tests.scheduling.test_vectors import VECTORS, lines

FIELDS = {kind[0].lower() + kind[1:] + "s": kind for kind in KINDS} | {
    "storageClasses": "StorageClass"
}
SCOPED = ("Pod", "PersistentVolumeClaim", "CSIStorageCapacity")


def some_cases(draw):
    """Return the pods to place and all (kind, object) pairs of a few answered cases."""
    pods, objects = [], []
    for path in draw.sample(VECTORS, 3):
        case = json.loads(draw.choice(lines(path)))
        pods.append(case["pod"])
        objects += [(kind, each) for name, kind in FIELDS.items() for each in case.get(name, ())]
    return pods, objects


def changed(draw, kind, plain, places):
    """Return another version of an object, sometimes an undecodable one."""
    plain = copy.deepcopy(plain)
    spec = plain.setdefault("spec", {})
    if kind == "Node":
        spec["unschedulable"] = draw.random() < 0.2
        labels = plain["metadata"].get("labels")
        if labels and draw.random() < 0.3:
            del labels[draw.choice(sorted(labels))]
        if draw.random() < 0.5:
            plain["metadata"]["name"] = draw.choice(places)
    elif kind == "Pod":
        spec["nodeName"] = draw.choice([*places, ""])
        plain["status"] = {
            "phase": draw.choice(["Running", "Running", "Running", "Failed"]),
            "nominatedNodeName": draw.choice([*places, ""]),
        }
    if draw.random() < 0.04:
        plain["spec"] = 5
    return plain


class History:
    """A state that is kept up to date, and the objects in it."""

    def __init__(self, draw):
        self.draw = draw
        self.pods, self.stock = some_cases(draw)
        self.places = [o["metadata"]["name"] for kind, o in self.stock if kind == "Node"][:5]
        self.state, self.known, self.objects = ClusterState(), set(), {}
        for kind in KINDS:
            self.know(kind)

    def know(self, kind):
        self.known.add(kind)
        self.state.mark_known(kind)

    def put(self):
        kind, plain = self.draw.choice(self.stock)
        plain = changed(self.draw, kind, plain, self.places)
        meta = plain["metadata"]
        key = kind, meta.get("namespace", "") if kind in SCOPED else "", meta["name"]
        self.objects[key] = plain
        self.state.put(convert(kind, plain))

    def remove(self):
        if self.objects:
            key = self.draw.choice(sorted(self.objects))
            del self.objects[key]
            self.state.remove(*key)

    def forget(self):
        kind = self.draw.choice(sorted(KINDS))
        self.state.mark_unknown(kind)
        for namespace, name in list(self.state.keys(kind)):
            self.state.remove(kind, namespace, name)
        self.known.discard(kind)
        self.objects = {key: o for key, o in self.objects.items() if key[0] != kind}

    def step(self):
        usual = [self.put] * 40 + [self.remove] * 14
        self.draw.choice([*usual, self.forget])()
        if self.draw.random() < 0.05:
            self.know(self.draw.choice(sorted(KINDS)))

    def new_state(self):
        state = ClusterState()
        for kind in self.known:
            state.mark_known(kind)
        for (kind, _, _), plain in self.draw.sample(list(self.objects.items()), len(self.objects)):
            state.put(convert(kind, plain))
        return state


def essence(verdict):
    return {
        "outcome": verdict.outcome,
        "feasible": verdict.feasible,
        "reasons": verdict.reasons,
        "message": verdict.condition_message,
        "busy": verdict.busy,
        "away": verdict.away,
        "unknown": {(u.why, u.may_admit, u.may_refuse) for u in verdict.unknown},
    }


@pytest.mark.parametrize("seed", range(8))
def test_an_updated_state_answers_like_a_new_one(seed):
    history = History(random.Random(seed))
    for _ in range(120):
        history.step()
        if history.draw.random() < 0.3:
            fresh = history.new_state()
            for kind in KINDS:
                assert set(history.state.keys(kind)) == set(fresh.keys(kind))
            for pod in history.pods:
                assert essence(explain(history.state, pod)) == essence(explain(fresh, pod))
