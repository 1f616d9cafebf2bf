"""The rule of tests/fixtures/second_try.py, on tests of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.fixtures import hub_logs, second_try

ROOT = Path(__file__).parents[3]
OPTIONS = (
    "-p",
    hub_logs.__name__,
    "-p",
    second_try.__name__,
    "-p",
    "no:asyncio",
    "-p",
    "no:playwright",
    "-p",
    "no:randomly",
)
LOSES_ITS_FIRST_RACE = """
from pathlib import Path

def test_that_wins_later():
    first = Path("first")
    if not first.exists():
        first.touch()
        assert False, "the machine was slow"
"""
A_HUB = """
import pytest
from tests.hub.running import RunningHub

@pytest.fixture
def hub(tmp_path):
    hub = object.__new__(RunningHub)
    hub._folder, hub._log_begins = tmp_path, 0
    (tmp_path / "hub.log").write_text("why it was slow")
    return hub
"""
LOSES_ALWAYS = "def test_that_never_wins(): assert False"


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    def run(*, ci: str, **modules: str) -> pytest.RunResult:
        monkeypatch.setenv("CI", ci)
        pytester.makepyfile(**modules)
        return pytester.runpytest_inprocess(*OPTIONS, "tests")

    return run


def test_in_ci_a_test_that_passes_at_its_second_try_is_named_with_its_first_failure(run) -> None:
    result = run(ci="true", **{"tests/hub/test_races": LOSES_ITS_FIRST_RACE})

    assert result.ret == pytest.ExitCode.OK
    flaky = "FLAKY tests/hub/test_races.py::test_that_wins_later (call)"
    result.stdout.fnmatch_lines([flaky, "*the machine was slow*", "*1 flaky*"])


def test_in_ci_a_test_that_fails_twice_is_red(run) -> None:
    modules = {"tests/hub/test_races": LOSES_ITS_FIRST_RACE, "tests/browser/test_b": LOSES_ALWAYS}

    result = run(ci="true", **modules)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(failed=2)


def test_in_ci_fixtures_get_a_second_try_too(run) -> None:
    fixture = LOSES_ITS_FIRST_RACE.replace("def test_that", "@pytest.fixture\ndef hub_that")
    modules = {
        "tests/hub/test_h": f"import pytest{fixture}\ndef test_hub(hub_that_wins_later): pass"
    }

    result = run(ci="true", **modules)

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines("FLAKY tests/hub/test_h.py::test_hub (setup)")


@pytest.mark.parametrize(
    ("ci", "ends"), [("true", "the end of the hub's log:"), ("", "*hub's log*")]
)
def test_a_failure_shows_what_the_hub_has_logged(run, monkeypatch, ci: str, ends: str) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    test = A_HUB + LOSES_ITS_FIRST_RACE.replace("later()", "later(hub)")

    result = run(ci=ci, **{"tests/hub/test_races": test})

    result.stdout.fnmatch_lines([ends, "why it was slow"])


def test_a_failure_is_shown_even_if_the_hub_has_no_log(run, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    hub = A_HUB.replace('.write_text("why it was slow")', "")

    result = run(ci="", **{"tests/hub/test_h": f"{hub}\ndef test_h(hub): assert not 'mine'"})

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*assert not 'mine'*", "*hub's log*", "FileNotFoundError*"])


def test_a_failure_without_a_hub_imports_nothing(monkeypatch) -> None:
    """The test may have replaced the clock or the files, or a module may be broken."""
    monkeypatch.delitem(sys.modules, "tests.hub.running", raising=False)

    assert hub_logs._ends(["no hub"]) == []
    assert "tests.hub.running" not in sys.modules


@pytest.mark.parametrize("folder", ["unit", "race", "scheduling"])
def test_unit_tests_and_races_get_no_second_try(run, folder: str) -> None:
    result = run(ci="true", **{f"tests/{folder}/test_races": LOSES_ITS_FIRST_RACE})

    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_on_a_developer_s_machine_there_is_no_second_try(run) -> None:
    result = run(ci="", **{"tests/hub/test_races": LOSES_ITS_FIRST_RACE})

    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_the_group_that_xdist_appends_is_no_part_of_a_name() -> None:
    plain, chosen = (
        "tests/hub/gates/test_gates.py::test_it",
        "tests/hub/gates/test_gates.py::test_it[a@b]",
    )

    assert [second_try._named(f"{name}@a-cluster") for name in (plain, chosen)] == [plain, chosen]
    assert [second_try._named(name) for name in (plain, chosen)] == [plain, chosen]


@pytest.mark.parametrize("folder", second_try.FOLDERS)
def test_only_tests_that_exist_get_second_tries(folder: str) -> None:
    assert any((ROOT / folder).rglob("test_*.py"))
