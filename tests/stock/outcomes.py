"""The outcome of each test of a run, and the tests that only KubeSpawner passes."""

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

PASSED = "passed"


def outcomes(report: Path) -> dict[str, str]:
    """Read pytest's JUnit report: each test, and ``passed`` or its other outcome."""
    return {
        f"{case.get('classname')}::{case.get('name')}": _outcome(case)
        for case in ET.parse(report).iter("testcase")
    }


def _outcome(case: ET.Element) -> str:
    for word in ("failure", "error", "skipped"):
        found = case.find(word)
        if found is not None:
            return f"{word}: {(found.get('message') or '').partition(chr(10))[0]}"
    return PASSED


def passed(run: Mapping[str, str]) -> list[str]:
    """Return the tests that passed."""
    return [test for test, outcome in run.items() if outcome == PASSED]


def lost(stock: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
    """Return the tests that pass only with KubeSpawner, with their outcome with GPUSpawner."""
    return {
        test: ours.get(test, "it did not run") for test in passed(stock) if ours.get(test) != PASSED
    }
