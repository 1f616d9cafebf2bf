"""The user-scheduler of the real chart, with its own values and with ours."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from traitlets.config import Config

from gpuspawner.cluster.schedulers import ONLY_SCORING, ChartScheduler, read_chart
from gpuspawner.configuration import check
from gpuspawner.runtime import Runtime
from gpuspawner.scheduling import Rules
from tests.fixtures.chart_hub import chart_module
from tests.helm.chart import Chart, read

NAME = "jhub-user-scheduler"
FILTERS = {"plugins": {"filter": {"disabled": [{"name": "NodeResourcesFit"}]}}}


def rules(
    monkeypatch: pytest.MonkeyPatch, chart: Chart, *files: dict[str, Any], **traits: Any
) -> Rules:
    """The rules of a hub in the chart, which sets `scheduler_name` as here."""
    names = {"user-scheduler": NAME}
    monkeypatch.setitem(sys.modules, "z2jh", chart_module(chart.values(*files), names))
    c = Config(KubeSpawner={"scheduler_name": NAME}, GPUSpawner=traits)
    return Runtime(check(c)).view.state.rules


@pytest.mark.parametrize("ours", [(), ("base",), ("base", "gke"), ("base", "profiles")])
def test_the_chart_s_values_change_only_scores(chart: Chart, ours: tuple[str, ...]) -> None:
    values = chart.values(*map(read, ours))["scheduling"]["userScheduler"]

    assert values["enabled"] is True
    assert read_chart(NAME, values) == ChartScheduler(NAME, "v1.30.14", ())


def test_its_pods_are_judged_by_the_rules_of_its_version(
    monkeypatch: pytest.MonkeyPatch, chart: Chart
) -> None:
    assert rules(monkeypatch, chart) == Rules.of_version("v1.30.14", [NAME, *ONLY_SCORING])


def test_the_administrator_s_version_counts_before_the_image_s(
    monkeypatch: pytest.MonkeyPatch, chart: Chart
) -> None:
    known = [NAME, *ONLY_SCORING]
    assert rules(monkeypatch, chart, scheduler_version="1.35") == Rules.of_version("1.35", known)


def test_with_other_filters_its_pods_stay_unknown(
    monkeypatch: pytest.MonkeyPatch, chart: Chart
) -> None:
    changed = {"scheduling": {"userScheduler": FILTERS}}

    assert chart.faults(changed) == []
    assert rules(monkeypatch, chart, changed).schedulers == {"default-scheduler", *ONLY_SCORING}
