"""The chart's values are read only inside the chart's hub."""

import sys
from types import ModuleType
from typing import Any

import pytest

from gpuspawner.compat import zero_to_jupyterhub
from tests.fixtures.chart_hub import chart_module

pytestmark = pytest.mark.each_python

VALUES: dict[str, Any] = {"scheduling": {"userScheduler": {"enabled": True, "replicas": 2}}}


def loaded(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> None:
    monkeypatch.setitem(sys.modules, "z2jh", module)


def test_outside_the_chart_there_is_nothing_to_see(monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, "z2jh", raising=False)

    assert zero_to_jupyterhub.user_scheduler() is None


def test_the_scheduler_has_the_release_s_name_and_values(monkeypatch) -> None:
    loaded(monkeypatch, chart_module(VALUES, {"user-scheduler": "jhub-user-scheduler"}))

    assert zero_to_jupyterhub.user_scheduler() == (
        "jhub-user-scheduler",
        VALUES["scheduling"]["userScheduler"],
    )


@pytest.mark.parametrize("scheduling", [{}, {"userScheduler": {"enabled": False}}])
def test_without_the_scheduler_there_is_none(monkeypatch, scheduling) -> None:
    names = {"user-scheduler": "jhub-user-scheduler"}
    loaded(monkeypatch, chart_module({"scheduling": scheduling}, names))

    assert zero_to_jupyterhub.user_scheduler() is None


def test_an_older_chart_without_the_name_shows_nothing(monkeypatch) -> None:
    loaded(monkeypatch, chart_module(VALUES, {}))

    assert zero_to_jupyterhub.user_scheduler() is None


def test_another_module_of_the_name_shows_nothing(monkeypatch) -> None:
    loaded(monkeypatch, ModuleType("z2jh"))

    assert zero_to_jupyterhub.user_scheduler() is None
