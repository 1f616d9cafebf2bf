"""What a pod says to Kueue, and what Kueue makes of it."""

from __future__ import annotations

from gpuspawner.kube.kueue import ResourceFlavor
from gpuspawner.kueue.pods import is_gated, placed, queue_of, without_gates
from tests.unit.makers.kueue_worlds import flavor, known, pod

GATES = [{"name": "kueue.x-k8s.io/admission"}, {"name": "kueue.x-k8s.io/topology"}]


def test_kueue_s_gates_are_opened_and_others_stay() -> None:
    gated = pod(schedulingGates=[*GATES, {"name": "example.com/mine"}])

    assert is_gated(gated)
    assert [it.name for it in without_gates(gated).spec.scheduling_gates or ()] == [
        "example.com/mine"
    ]
    assert without_gates(pod(schedulingGates=GATES)) == pod()


def test_gates_of_others_hold_a_pod_back_from_nothing_of_kueue_s() -> None:
    gated = pod(schedulingGates=[{"name": "example.com/mine"}])

    assert not is_gated(gated)
    assert without_gates(gated) == gated
    assert queue_of(gated) == ""


def test_a_pod_gets_the_labels_and_tolerations_of_its_flavors() -> None:
    tolerated = [{"key": "gpu", "operator": "Exists"}]
    objects = known(flavor("t4", nodeLabels={"gpu": "t4"}, tolerations=tolerated))
    t4 = objects.every(ResourceFlavor)

    made = placed(pod(nodeSelector={"zone": "a"}), t4)

    assert made == pod(nodeSelector={"zone": "a", "gpu": "t4"}, tolerations=tolerated)
