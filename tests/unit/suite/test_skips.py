"""The rule of tests/fixtures/skips.py, on tests of its own."""

from __future__ import annotations

import pytest

# Without the plugins that cannot run inside themselves.
OPTIONS = ("-p", "tests.fixtures.skips", "-p", "no:asyncio", "-p", "no:playwright")
TESTS = """
import pytest

def test_that_runs(): pass
def test_without_a_browser(): pytest.skip("no browser")
def test_without_the_chart(): pytest.skip("chart: there is none")

@pytest.mark.skipif(True, reason="version: JupyterHub 6 brought this")
def test_of_another_version(): pass

@pytest.mark.xfail(strict=True)
def test_that_has_to_fail(): assert False
"""


@pytest.fixture
def run(pytester):
    pytester.makepyfile(TESTS)
    return lambda: pytester.runpytest_inprocess(*OPTIONS)


def test_in_ci_only_other_versions_and_a_missing_chart_may_be_skipped(run, monkeypatch):
    monkeypatch.setenv("CI", "true")

    run().assert_outcomes(passed=1, failed=1, skipped=2, xfailed=1)


def test_elsewhere_a_skip_is_a_skip(run, monkeypatch):
    monkeypatch.delenv("CI", raising=False)

    run().assert_outcomes(passed=1, skipped=3, xfailed=1)


def test_a_whole_module_cannot_be_skipped_in_ci(pytester, monkeypatch):
    monkeypatch.setenv("CI", "true")
    pytester.makepyfile("import pytest; pytest.importorskip('no_such_module')")

    result = pytester.runpytest_inprocess(*OPTIONS)

    result.assert_outcomes(errors=1)
