"""What holds for every test: where nobody watches, nothing may be skipped.

With CI set, a skipped test fails. The one exception is a condition on versions, whose reason says
so: `@pytest.mark.skipif(version_info < (6,), reason="version: JupyterHub 6 brought this")`.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import TypeVar

import pytest
from hypothesis import settings

# A machine that is busy with other tests is slow, not wrong.
settings.register_profile("gpuspawner", deadline=None)
settings.load_profile("gpuspawner")

pytest_plugins = ["tests.fixtures.cluster", "tests.fixtures.bare_cluster"]

VERSION_CONDITION = "Skipped: version:"

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _fail_if_skipped((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _fail_if_skipped((yield))


def _fail_if_skipped(report: Report) -> Report:
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        *_, reason = report.longrepr
        if not reason.startswith(VERSION_CONDITION):
            report.outcome = "failed"
            report.longrepr = f"{reason}\nIn CI nothing is skipped (tests/conftest.py)."
    return report
