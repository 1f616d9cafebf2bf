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


def test_the_chart_s_limits_suit_each_other() -> None:
    assert tuple(conflicts(CHART)) == ()


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


def test_limits_that_just_suit_each_other_are_not() -> None:
    just = replace(CHART, preparing=120, slow_spawn=60, api_retries=989, api_request=3)

    assert tuple(conflicts(just)) == ()


SETTINGS = SimpleNamespace(
    start_timeout=300, http_timeout=30, scheduling_timeout=60, preparing_timeout=None,
    k8s_api_request_timeout=3, k8s_api_request_retry_timeout=30,
)  # fmt: skip


def test_the_limits_are_read_from_the_traits_and_those_of_the_phases_add_up() -> None:
    assert Limits.of(SETTINGS, {"slow_spawn_timeout": 0}, 2) == CHART


def test_a_configuration_that_updates_the_default_settings_is_read_too() -> None:
    c = Config()
    c.JupyterHub.tornado_settings.update({"slow_spawn_timeout": 61})

    limits = Limits.of(SETTINGS, c.JupyterHub.get("tornado_settings"), 2)

    assert limits == replace(CHART, slow_spawn=61)


@pytest.mark.parametrize(
    "tornado_settings", [None, {}, {"slow_spawn_timeout": None}, {"slow_spawn_timeout": "soon"}]
)
def test_what_is_no_number_of_seconds_counts_as_the_default(tornado_settings) -> None:
    assert Limits.of(SETTINGS, tornado_settings, 2) == replace(CHART, slow_spawn=10)
