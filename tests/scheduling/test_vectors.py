"""Cases answered by the filter plugins of kube-scheduler 1.36.2 (see vectors/README.md)."""

import gzip
import json
from pathlib import Path

import pytest

from gpuspawner.scheduling import ClusterState, Outcome, evaluate, explain
from gpuspawner.scheduling.evaluate import fits_somewhere

CASES = [
    json.loads(line)
    for path in sorted((Path(__file__).parent / "vectors").glob("*.jsonl.gz"))
    for line in gzip.decompress(path.read_bytes()).splitlines()
]


def state_of(case):
    return ClusterState.from_objects(
        **{kind: case[kind] for kind in case if kind not in ("name", "pod", "expected")}
    )


def test_no_case_is_left_out():
    assert len(CASES) == 2116


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_answer_is_the_schedulers(case):
    verdict = explain(state_of(case), case["pod"])

    expected = case["expected"]
    assert list(verdict.feasible) == expected["feasible"]
    assert verdict.message == expected["message"]
    reasons = {node: set(texts) for node, texts in verdict.reasons.items()}
    assert reasons == {node: set(texts) for node, texts in expected["reasons"].items()}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_evaluate_and_explain_agree(case):
    state = state_of(case)
    short, full = evaluate(state, case["pod"]), explain(state, case["pod"])
    assert (short.outcome, short.feasible) == (full.outcome, full.feasible)
    assert short.message == full.message
    assert short.feasible or short.reasons == full.reasons
    assert fits_somewhere(state, case["pod"]) == (short.outcome is Outcome.FITS)
