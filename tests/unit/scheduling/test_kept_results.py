"""Results that are kept between evaluations never change a verdict."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from gpuspawner.kube.objects import convert
from gpuspawner.scheduling import ClusterState, explain
from gpuspawner.scheduling.node_kinds import NodeKinds
from tests.unit.makers.objects import KINDS, named, node, pod, required
from tests.unit.makers.storage import claim, uses, volume

NAMES = st.sampled_from(["a", "b", "c"])
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TERM = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "zone"}
ASKS = (
    pod(requests={"gpu": "1"}, labels={"app": "x"}),
    pod(requests={"gpu": "2"}, nodeSelector={"zone": "y"}),
    pod(
        labels={"app": "x"},
        affinity={"podAffinity": {REQUIRED: [TERM]}},
        topologySpreadConstraints=[
            {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **TERM},
        ],
    ),
    pod(
        labels={"app": "x"},
        topologySpreadConstraints=[
            {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **TERM},
        ],
    ),
    pod(**uses("home")),
    pod(requests={"gpu": "1"}, nodeSelector={"kubernetes.io/hostname": "a"}),
    pod(requests={"gpu": "1"}, **required(named("a"), named("b"))),
    pod(priority=1, affinity={"podAntiAffinity": {REQUIRED: [{**TERM, "namespaceSelector": {}}]}}),
)


HOME = {
    "persistentVolumeClaims": [claim(volume="disk")],
    "persistentVolumes": [volume(zone="y", claim="home")],
}


class KeptResults(RuleBasedStateMachine):
    """Puts and removes objects; a new state with the same objects must give the same verdicts."""

    @initialize()
    def start(self):
        self.nodes, self.pods = {}, {}
        self.state = ClusterState.from_objects(**{**dict.fromkeys(KINDS, ()), **HOME, "nodes": ()})
        # Of three nodes, host names are already individual.
        self.state.kinds = self.state._places.kinds = NodeKinds(most_values=2)

    @rule(
        name=NAMES,
        zone=st.sampled_from("yz"),
        gpus=st.sampled_from(["0", "1", "2"]),
        cordoned=st.booleans(),
        tainted=st.booleans(),
    )
    def put_node(self, name, zone, gpus, cordoned, tainted):
        taints = [{"key": "k", "effect": "NoSchedule"}] if tainted else []
        plain = node(name, labels={"zone": zone}, gpu=gpus, unschedulable=cordoned, taints=taints)
        self.nodes[name] = plain
        self.state.put(convert("Node", plain))

    @rule(name=NAMES)
    def remove_node(self, name):
        self.nodes.pop(name, None)
        self.state.remove("Node", "", name)

    @rule(
        name=st.sampled_from(["p", "q", "r"]),
        place=NAMES | st.just(""),
        gpus=st.sampled_from(["0", "1"]),
        labels=st.sampled_from([{}, {"app": "x"}]),
        namespace=st.sampled_from(["hub", "other"]),
        ending=st.booleans(),
        repels=st.booleans(),
        nominated=NAMES | st.just(""),
    )
    def put_pod(self, name, place, gpus, labels, namespace, ending, repels, nominated):
        plain = pod(
            name,
            node=place,
            namespace=namespace,
            labels=labels,
            requests={"gpu": gpus},
            metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"} if ending else {},
            status={"nominatedNodeName": nominated},
            affinity={"podAntiAffinity": {REQUIRED: [TERM] if repels else []}},
        )
        self.pods[namespace, name] = plain
        self.state.put(convert("Pod", plain))

    @rule(name=st.sampled_from(["p", "q", "r"]), namespace=st.sampled_from(["hub", "other"]))
    def remove_pod(self, name, namespace):
        self.pods.pop((namespace, name), None)
        self.state.remove("Pod", namespace, name)

    @invariant()
    def a_new_state_answers_the_same(self):
        if not hasattr(self, "state"):
            return
        kinds = {**dict.fromkeys(KINDS, ()), **HOME, "pods": self.pods.values()}
        fresh = ClusterState.from_objects(nodes=self.nodes.values(), **kinds)
        for request in ASKS:
            kept, new = explain(self.state, request), explain(fresh, request)
            assert kept.outcome == new.outcome
            assert kept.feasible == new.feasible
            assert kept.reasons == new.reasons
            assert kept.condition_message == new.condition_message
            assert (kept.busy, kept.away) == (new.busy, new.away)


def test_whatever_changes_kept_results_are_those_of_a_new_state():
    run_state_machine_as_test(
        KeptResults, settings=settings(max_examples=30, stateful_step_count=25)
    )


@pytest.mark.nightly(why="a thousand series of changes take a minute")
def test_whatever_changes_for_long_kept_results_are_those_of_a_new_state():
    run_state_machine_as_test(
        KeptResults, settings=settings(max_examples=1000, stateful_step_count=50)
    )
