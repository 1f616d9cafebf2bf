"""Limits of the hub that defeat each other are found; those of the chart's hub do not."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from msgspec.structs import replace
from traitlets.config import Config

from gpuspawner.compat.hub_limits import Conflict, Limits, conflicts
from gpuspawner.messages.administrators import find_conflict

# As in the chart: KubeSpawner's and JupyterHub's defaults, but for three values.
CHART = Limits(start=990, preparing=600, slow_spawn=0, api_request=3, api_retries=30, admission=2)


def test_jupyterhub_s_own_start_timeout_is_long_enough() -> None:
    plain = SimpleNamespace(**{**vars(SETTINGS), "start_timeout": 60})

    assert tuple(conflicts(Limits.of(plain, {}, 2))) == ()


@pytest.mark.parametrize(
    ("change", "conflict", "told"),
    [
        ({"preparing": 119}, Conflict.SHORT_PREPARING, ["is 119 s"]),
        ({"slow_spawn": 61}, Conflict.LATE_PROGRESS, ["is 61 s"]),
        ({"api_retries": 990}, Conflict.LONG_RETRIES, ["is 990 s", "of a start, 990 s"]),
        ({"api_request": 2}, Conflict.SHORT_REQUEST, ["is 2 s", "waits 2 s"]),
    ],
)
def test_each_limit_that_defeats_another_is_found(change, conflict, told) -> None:
    limits = replace(CHART, **change)

    assert tuple(conflicts(limits)) == (conflict,)
    assert all(it in find_conflict(conflict, limits).text for it in told)


@pytest.mark.parametrize(
    "limits",
    [CHART, replace(CHART, preparing=120, slow_spawn=60, api_retries=989, api_request=3)],
    ids=["the chart's", "at the border"],
)
def test_limits_that_suit_each_other_are_not(limits) -> None:
    assert tuple(conflicts(limits)) == ()


SETTINGS = SimpleNamespace(
    start_timeout=300, http_timeout=30, scheduling_timeout=60, preparing_timeout=None,
    k8s_api_request_timeout=3, k8s_api_request_retry_timeout=30,
)  # fmt: skip


def updated() -> object:
    """What a configuration that updates the default settings leaves until the hub reads it."""
    c = Config()
    c.JupyterHub.tornado_settings.update({"slow_spawn_timeout": 61})
    return c.JupyterHub.get("tornado_settings")


@pytest.mark.parametrize(
    ("tornado_settings", "slow_spawn"),
    [
        ({"slow_spawn_timeout": 0}, 0),
        (updated(), 61),
        (None, 10),
        ({}, 10),
        ({"slow_spawn_timeout": None}, 10),
        ({"slow_spawn_timeout": "soon"}, 10),
    ],
)
def test_the_limits_are_read_from_the_settings_and_those_of_the_phases_add_up(
    tornado_settings, slow_spawn
) -> None:
    found = Limits.of(SETTINGS, tornado_settings, 2)

    assert found == replace(CHART, slow_spawn=slow_spawn)
