"""Which tests count as lost when KubeSpawner's own tests get a GPUSpawner."""

from __future__ import annotations

from pathlib import Path

from tests.stock.outcomes import differing, lost, outcomes, passed

REPORT = """<testsuites><testsuite>
<testcase classname="test_spawner" name="test_a"/>
<testcase classname="test_spawner" name="test_b"><failure message="no"/></testcase>
<testcase classname="test_spawner" name="test_c"><error message="no fixture&#10;more"/></testcase>
<testcase classname="test_spawner" name="test_d"><skipped message="no cluster"/></testcase>
</testsuite></testsuites>"""


def test_only_what_neither_failed_nor_was_skipped_has_passed(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)

    run = outcomes(report)

    assert passed(run) == ["test_spawner::test_a"]
    assert run["test_spawner::test_b"] == "failure: no"
    assert run["test_spawner::test_c"] == "error: no fixture"
    assert run["test_spawner::test_d"] == "skipped: no cluster"


def test_lost_is_what_passes_with_kubespawner_and_not_with_ours() -> None:
    stock = {"both": "passed", "neither": "failure: x", "broken": "passed", "missing": "passed"}
    ours = {"both": "passed", "neither": "failure: x", "broken": "error: y", "mended": "passed"}

    assert lost(stock, ours) == {"broken": "error: y", "missing": "it did not run"}


def test_what_ends_otherwise_than_with_kubespawner_differs_but_for_numbers() -> None:
    stock = {"a": "passed", "b": "failure: at 0x7f10, 12 s", "c": "failure: x", "d": "passed"}
    ours = {"a": "passed", "b": "failure: at 0x8e23, 9 s", "c": "failure: y", "e": "passed"}

    assert differing(stock, ours) == {
        "c": ("failure: x", "failure: y"),
        "d": ("passed", "it did not run"),
        "e": ("it did not run", "passed"),
    }
