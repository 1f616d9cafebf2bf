"""One evaluation for pods that are alike, and never one for pods that are not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuspawner.preflight import verdicts as judge_module
from gpuspawner.preflight.contention import Demand
from gpuspawner.preflight.verdicts import Subject, Verdicts, is_simple
from gpuspawner.scheduling.verdict import Outcome
from tests.unit.preflight.worlds import GPU, StillView, node, pod, proposal

HOSTNAME = "kubernetes.io/hostname"
TERM = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": HOSTNAME}
ANTI_AFFINITY = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}


def subject(name: str, gpus: int = 1, **spec: object) -> Subject:
    made = proposal(name, gpus, **spec).subject
    assert isinstance(made, Subject)
    return made


def labelled(name: str, app: str) -> Subject:
    what = proposal(name)
    made = replace(what, pod={**what.pod, "metadata": {"labels": {"app": app}}}).subject
    assert isinstance(made, Subject)
    return made


@pytest.fixture
def evaluations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the pods that are evaluated."""
    names: list[str] = []
    evaluate = judge_module.evaluate

    def counted(state: object, pod: object, **demands: object) -> object:
        names.append(pod.metadata.name)  # type: ignore[attr-defined]
        return evaluate(state, pod, **demands)  # type: ignore[arg-type]

    monkeypatch.setattr(judge_module, "evaluate", counted)
    return names


def test_pods_alike_are_evaluated_once_until_the_state_changes(evaluations: list[str]) -> None:
    view = StillView(("Node", node("n", 2)))
    judge = Verdicts(view.state)

    for name in ("a", "b", "c"):
        judge.verdict(subject(name))
    assert evaluations == ["a"]

    view.put("Pod", pod("x", on="n"))
    judge.verdict(subject("d"))
    assert evaluations == ["a", "d"]


def test_pods_that_ask_for_different_things_are_evaluated_each(evaluations: list[str]) -> None:
    judge = Verdicts(StillView(("Node", node("n", 2))).state)

    assert judge.verdict(subject("a", 1)).outcome is Outcome.FITS
    assert judge.verdict(subject("b", 4)).outcome is Outcome.IMPOSSIBLE
    assert evaluations == ["a", "b"]


def test_generated_names_of_volumes_that_never_decide_make_no_difference(
    evaluations: list[str],
) -> None:
    judge = Verdicts(StillView(("Node", node("n", 2))).state)

    judge.verdict(subject("a", volumes=[{"name": "kube-api-access-1", "projected": {}}]))
    judge.verdict(subject("b", volumes=[{"name": "kube-api-access-2", "projected": {}}]))

    assert evaluations == ["a"]


def test_labels_make_a_difference_where_a_running_pod_keeps_others_away() -> None:
    loner = pod("loner", 0, on="n", affinity=ANTI_AFFINITY)
    host = node("n", 2)
    host["metadata"] = {
        "name": "n",
        "labels": {"gpu": "a100", HOSTNAME: "n"},
    }
    judge = Verdicts(StillView(("Node", host), ("Pod", loner)).state)

    assert judge.verdict(labelled("b", "b")).outcome is Outcome.FITS
    assert judge.verdict(labelled("a", "a")).outcome is Outcome.BUSY


def test_equal_demands_of_different_pods_are_one_object() -> None:
    judge = Verdicts(StillView(("Node", node("n", 2))).state)

    one = judge.demand(subject("a", volumes=[{"name": "x", "ephemeral": None}]))
    two = judge.demand(subject("b", tolerations=[{"key": "k", "operator": "Exists"}]))

    assert one is two
    assert one == Demand({"pods": 1, GPU: 1, "memory": 2**30}, frozenset({"n"}))


def test_what_fits_nowhere_demands_nothing() -> None:
    judge = Verdicts(StillView(("Node", node("n", 2))).state)

    assert judge.demand(subject("a", 4)) is None


def test_what_preempts_may_land_anywhere() -> None:
    placeholder = pod("placeholder", on="n", priority=-1)
    judge = Verdicts(StillView(("Node", node("n", 1)), ("Pod", placeholder)).state)

    demand = judge.demand(subject("a"))

    assert demand is not None
    assert (demand.nodes, demand.simple) == (None, False)


def test_what_nobody_can_judge_is_counted_anywhere() -> None:
    judge = Verdicts(StillView().state)
    unreadable = subject("a", overhead={"cpu": "many"})

    assert judge.demand_anywhere(subject("b")).requests == {"pods": 1, GPU: 1, "memory": 2**30}
    assert judge.demand_anywhere(unreadable) == Demand({}, None, simple=False)


@pytest.mark.parametrize(
    ("spec", "simple"),
    [
        ({}, True),
        ({"affinity": {"nodeAffinity": {}}}, True),
        ({"affinity": ANTI_AFFINITY}, False),
        ({"affinity": {"podAffinity": ANTI_AFFINITY["podAntiAffinity"]}}, False),
        (
            {"topologySpreadConstraints": [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]},
            False,
        ),
        (
            {"topologySpreadConstraints": [{"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}]},
            True,
        ),
        ({"containers": [{"name": "n", "ports": [{"hostPort": 80}]}]}, False),
        ({"containers": [{"name": "n", "ports": [{"containerPort": 8888}]}]}, True),
    ],
)
def test_a_pod_is_simple_where_its_landing_takes_amounts_and_nothing_else(
    spec: dict[str, object], simple: bool
) -> None:
    assert is_simple(subject("a", **spec).pod) is simple
