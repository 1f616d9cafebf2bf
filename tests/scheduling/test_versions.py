"""Compares verdicts with what kube-schedulers 1.30 to 1.37 answer (vectors/README.md).

A verdict is right if the scheduler gives the same nodes, or none. The texts are those of one
version, and `test_vectors` compares them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuspawner.scheduling import ClusterState, Outcome, Rules, Verdict, evaluate
from tests.scheduling.test_vectors import VECTORS, cases

VERSIONS = Path(__file__).parent / "vectors" / "versions"
CASES = list(cases(VERSIONS / "cases.jsonl.gz"))
PATCHES = {"1.30": 14, "1.32": 13, "1.33": 13, "1.34": 4, "1.35": 4, "1.36": 2, "1.37": 2}
"""The patch release of each minor version that answered."""

_ALL = tuple(PATCHES)
UNKNOWN = {
    "claim-immediate-unbound": (_ALL, "the scheduler looks again once the claim is bound"),
    "dra-claim-free-device": (_ALL, "a driver's devices decide"),
    "gated": (_ALL, "somebody else opens the gate"),
    "dra-ext-free-device": (_ALL[3:], "a DeviceClass serves the resource"),
    "dra-ext-free-device-alpha-gate": (_ALL[3:], "a DeviceClass serves the resource"),
    "dra-ext-plugin-allocatable-zero": (_ALL[3:], "a DeviceClass serves the resource"),
    "dra-ext-plugin-node-busy-dra-node-free": (_ALL[3:], "a DeviceClass serves the resource"),
    "dra-ext-two-asked-one-device": (_ALL[3:], "a DeviceClass serves the resource"),
    "dra-implicit-name-alpha-gate": (_ALL[3:], "the resource is the name of a DeviceClass"),
    "ns-selector-doesnotexist-antiaffinity": (_ALL[3:6], "patch releases differ"),
    "ns-selector-keep-away-from-other-namespaces": (_ALL[3:6], "patch releases differ"),
    "ns-selector-notin-affinity": (_ALL[3:6], "patch releases differ"),
    "ns-selector-notin-antiaffinity": (_ALL[3:6], "patch releases differ"),
    "toleration-gt-gate-off": (_ALL[4:], "only the API server's gate shows"),
    "toleration-gt-gate-on": (_ALL[4:], "only the API server's gate shows"),
    "feature-restart-all-containers": (_ALL[4:], "features of nodes decide"),
    "feature-hostusers-hostnetwork": (_ALL[5:], "features of nodes decide"),
    "group-scheduling-group-gate-on": (_ALL[5:], "the rest of its group decides"),
    "csi-driver-missing-optin": (("1.36",), "only the API server's gate shows"),
    "csi-driver-missing-optin-unbound": (("1.36",), "only the API server's gate shows"),
    "feature-bind-mount-options": (("1.37",), "features of nodes decide"),
}
"""The cases whose verdicts are unknown, each with the versions and why."""

FEWER_NODES = {
    "dra-ext-plugin-node-free": (_ALL[5:], "nodes with devices by claim aren't named"),
}
"""The cases that fit also on other nodes than we name."""

UNREACHABLE = {
    "spread-same-key-twice-invalid": (_ALL[:2], "the API server refuses such a pod"),
}


def listed(table: dict[str, tuple[tuple[str, ...], str]], name: str, version: str) -> bool:
    return version in table.get(name, ((), ""))[0]


def rules(version: str) -> Rules:
    return Rules.of_version(f"v{version}.{PATCHES[version]}")


def verdict(case: dict[str, Any], version: str) -> Verdict:
    others = ("name", "pod", "expected", "expected_by_version", "gates", "resourceClaims")
    kinds = {kind: case[kind] for kind in case if kind not in (*others, "resourceSlices")}
    return evaluate(ClusterState.from_objects(**kinds, rules=rules(version)), case["pod"])


def as_answered(verdict: Verdict) -> str:
    """Return the verdict as an answer: the nodes, or none."""
    if verdict.outcome is Outcome.UNKNOWN:
        return "unknown"
    return str(list(verdict.feasible)) if verdict.outcome is Outcome.FITS else "none"


def expected(case: dict[str, Any], version: str) -> str:
    name, answer = case["name"], case["expected_by_version"][version]
    if listed(UNKNOWN, name, version):
        return "unknown"
    return answer if answer.startswith("[") else "none"


def wrong(case: dict[str, Any]) -> Iterator[str]:
    for version in case["expected_by_version"]:
        actual, right = as_answered(verdict(case, version)), expected(case, version)
        fewer = listed(FEWER_NODES, case["name"], version) and set(actual) < set(right)
        if actual != right and not fewer and not listed(UNREACHABLE, case["name"], version):
            yield f"{version} answers {right}, and we {actual}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_verdict_is_the_answer_of_the_schedulers_version(case: dict[str, Any]) -> None:
    assert list(wrong(case)) == []


def test_all_cases_are_there() -> None:
    names = {case["name"] for case in CASES}

    assert len(names) == 44
    assert names >= {*UNKNOWN, *FEWER_NODES, *UNREACHABLE}


def differing(version: str) -> dict[str, list[str]]:
    """Return the nodes of the cases that a version answers otherwise than 1.36.2."""
    lines = cases(VERSIONS / f"{version}.jsonl.gz")
    return {line["name"]: line["feasible"] for line in lines}


@pytest.mark.parametrize(("version", "number"), [("1.30", 21), ("1.33", 15), ("1.37", 2)])
def test_the_random_cases_have_the_answers_of_a_version(version: str, number: int) -> None:
    others = differing(version)
    different = {}
    for case in (case for path in VECTORS for case in cases(path)):
        right = others.get(case["name"], case["expected"]["feasible"])
        actual = list(verdict(case, version).feasible)
        if actual != right:
            different[case["name"]] = actual, right

    assert different == {}
    assert len(others) == number
