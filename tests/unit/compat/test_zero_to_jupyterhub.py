"""The chart's values are read only inside the chart's hub."""

import sys
from types import ModuleType
from typing import Any

import pytest

from gpuspawner.compat import zero_to_jupyterhub
from tests.fixtures.chart_hub import chart_module

pytestmark = pytest.mark.each_python

SCHEDULER: dict[str, Any] = {"enabled": True, "replicas": 2}
NAMES = {"user-scheduler": "jhub-user-scheduler"}


def chart(names: dict[str, str], **scheduling: Any) -> ModuleType:
    return chart_module({"scheduling": scheduling}, names)


@pytest.mark.parametrize(
    ("module", "found"),
    [
        (chart(NAMES, userScheduler=SCHEDULER), ("jhub-user-scheduler", SCHEDULER)),
        (chart(NAMES), None),
        (chart(NAMES, userScheduler={"enabled": False}), None),
        (chart({}, userScheduler=SCHEDULER), None),
        (ModuleType("z2jh"), None),
    ],
    ids=["it runs", "none", "disabled", "an older chart", "another module of the name"],
)
def test_the_scheduler_has_the_release_s_name_and_values(module, found, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "z2jh", module)

    assert zero_to_jupyterhub.user_scheduler() == found


def test_outside_the_chart_there_is_nothing_to_see(monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, "z2jh", raising=False)

    assert zero_to_jupyterhub.user_scheduler() is None
