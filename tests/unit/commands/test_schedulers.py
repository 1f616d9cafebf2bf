"""What the doctor says of the schedulers that place servers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from traitlets.config import Config

from gpuspawner.commands.checks.cluster import check_schedulers
from gpuspawner.commands.findings import Finding, Severity
from gpuspawner.commands.hub import of_files
from gpuspawner.commands.servers import Server, Tried, try_out
from tests.fixtures.chart_hub import chart_module
from tests.unit.commands.files import Files, of_fleet

NAME = "jhub-user-scheduler"
SOUND = {"enabled": True, "image": {"name": "x.io/kube-scheduler", "tag": "v1.30.14"}}


async def found(
    folder: Path, monkeypatch: pytest.MonkeyPatch, values: dict[str, object]
) -> list[Finding]:
    Files(folder, of_fleet("single"))
    chart = chart_module({"scheduling": {"userScheduler": values}}, {"user-scheduler": NAME})
    monkeypatch.setitem(sys.modules, "z2jh", chart)
    hub = of_files(Config(GPUSpawner={"scheduler_name": NAME}), folder)
    tried: Tried = await try_out(hub, Server("any", "", {}))
    return list(check_schedulers(hub, [tried]))


async def test_the_chart_s_scheduler_is_named_with_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (finding,) = await found(tmp_path, monkeypatch, SOUND)

    assert finding.severity is Severity.FINE
    assert finding.text == (
        "Scheduler: jhub-user-scheduler, kube-scheduler v1.30.14 of the chart; its values change "
        "only scores."
    )


async def test_a_value_that_may_change_the_filters_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = {**SOUND, "plugins": {"filter": {"disabled": [{"name": "*"}]}}}

    (finding,) = await found(tmp_path, monkeypatch, changed)

    assert finding.severity is Severity.ERROR
    assert "scheduling.userScheduler.plugins.filter may change how it filters" in finding.text
