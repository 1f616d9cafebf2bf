"""Compares verdicts with answers of kube-scheduler 1.36.2's filter plugins (vectors/README.md).

Each file is one test, because pytest would need more time to report 2,116 tests than to run them.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gpuspawner.kube.objects import convert
from gpuspawner.kube.pods import Pod
from gpuspawner.scheduling import ClusterState, Outcome, Verdict, evaluate, explain
from gpuspawner.scheduling.could_hold import reach
from gpuspawner.scheduling.evaluate import fits_somewhere, fitting_nodes, lacks_node

VECTORS = sorted((Path(__file__).parent / "vectors").glob("*.jsonl.gz"))
EACH_FILE = pytest.mark.parametrize(
    "path", VECTORS, ids=lambda path: path.name.removesuffix(".jsonl.gz")
)


def lines(path: Path) -> list[bytes]:
    return gzip.decompress(path.read_bytes()).splitlines()


def cases(path: Path) -> Iterator[dict[str, Any]]:
    return map(msgspec.json.decode, lines(path))


def state_of(case: dict[str, Any]) -> ClusterState:
    return ClusterState.from_objects(
        **{kind: case[kind] for kind in case if kind not in ("name", "pod", "expected")}
    )


def answer(feasible: list[str], message: str, reasons: dict[str, list[str]]) -> dict[str, Any]:
    """Return an answer that compares equal in any order of the reasons."""
    texts = {node: set(texts) for node, texts in reasons.items()}
    return {"feasible": list(feasible), "message": message, "reasons": texts}


def test_all_cases_are_present() -> None:
    assert sum(len(lines(path)) for path in VECTORS) == 2116


@EACH_FILE
def test_explain_gives_the_schedulers_answer(path: Path) -> None:
    different = {}
    for case in cases(path):
        verdict = explain(state_of(case), case["pod"])
        actual = answer(verdict.feasible, verdict.message, verdict.reasons)
        expected = answer(**case["expected"])
        if actual != expected:
            different[case["name"]] = actual, expected

    assert different == {}


@EACH_FILE
def test_evaluate_and_explain_agree(path: Path) -> None:
    different = [case["name"] for case in cases(path) if not agree(state_of(case), case["pod"])]

    assert different == []


def agree(state: ClusterState, pod: dict[str, Any]) -> bool:
    short, full = evaluate(state, pod), explain(state, pod)
    return (
        essence(short) == essence(full)
        and (bool(short.feasible) or short.reasons == full.reasons)
        and fits_somewhere(state, pod) == (short.outcome is Outcome.FITS)
        and tuple(fitting_nodes(state, pod)) == fitting(short)
        and reaches(state, pod, short)
        and lacks(state, pod, short)
    )


def fitting(verdict: Verdict) -> tuple[str, ...]:
    return verdict.feasible if verdict.outcome is Outcome.FITS else ()


def reaches(state: ClusterState, pod: dict[str, Any], verdict: Verdict) -> bool:
    """Whether `reach` names the nodes on which a pod fits, or those that are busy."""
    decoded = convert("Pod", pod)
    found = reach(state, decoded) if isinstance(decoded, Pod) else frozenset[str]()
    match verdict.outcome:
        case Outcome.FITS:
            return found.issuperset(verdict.feasible)
        case Outcome.BUSY:
            return found == set(verdict.busy)
        case _:
            return True


def lacks(state: ClusterState, pod: dict[str, Any], verdict: Verdict) -> bool:
    """Whether `lacks_node` says what the verdict says."""
    decoded = convert("Pod", pod)
    return not isinstance(decoded, Pod) or lacks_node(state, decoded) == verdict.lacks_node


def essence(verdict: Verdict) -> tuple[Any, ...]:
    return verdict.outcome, verdict.feasible, verdict.message
