"""The outcome of each test of a run, and the tests that only KubeSpawner passes."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

PASSED = "passed"
NOT_RUN = "it did not run"
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")


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
    return {test: ours.get(test, NOT_RUN) for test in passed(stock) if ours.get(test) != PASSED}


def differing(stock: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the tests that end otherwise than with KubeSpawner.

    Numbers may differ: addresses, times and names by chance.
    """
    both = {test: (stock.get(test, NOT_RUN), ours.get(test, NOT_RUN)) for test in {**stock, **ours}}
    return {
        test: (one, other)
        for test, (one, other) in both.items()
        if _NUMBER.sub("#", one) != _NUMBER.sub("#", other)
    }
