"""Compares verdicts with recorded answers of the real kube-scheduler v1.36.2.

`tests/scheduling/live/record.py` wrote the answers. They cover what the vectors lack: nominated
pods, preemption, CSI limits, storage capacity, resizes, and the whole message.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuspawner.scheduling import ClusterState, evaluate
from tests.scheduling.live.comparing import ARGUMENTS, RULES, difference, judge
from tests.scheduling.live.world import Answer
from tests.scheduling.test_vectors import cases, lacks

ANSWERS = sorted((Path(__file__).parent / "answers").glob("*.jsonl.gz"))


@pytest.mark.parametrize("path", ANSWERS, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_the_verdict_equals_the_schedulers_answer(path: Path) -> None:
    different = []
    for case in cases(path):
        kinds = {kind: case["objects"].get(kind, []) for kind in ARGUMENTS.values()}
        state = ClusterState.from_objects(**kinds, rules=RULES)
        verdict = judge(state, case["pod"])
        answer = Answer(**case["answer"])
        if text := difference(verdict, answer):
            different.append(f"{case['name']}: {text}")
        assert lacks(state, case["pod"], evaluate(state, case["pod"]))

    assert different == []
