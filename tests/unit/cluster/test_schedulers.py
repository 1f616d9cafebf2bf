"""Each scheduler is judged by what the administrator says, then by what the chart shows."""

from __future__ import annotations

import pytest

from gpuspawner.cluster.schedulers import (
    ONLY_SCORING,
    Declared,
    DefaultScheduler,
    OfChart,
    OfProvider,
    Schedulers,
    UnknownScheduler,
)
from gpuspawner.cluster.user_scheduler import ChartScheduler
from gpuspawner.scheduling.rules import DEFAULT_SCHEDULER

HARMLESS = ChartScheduler("jhub-user-scheduler", "v1.30.14", ())
CHANGED = ChartScheduler("jhub-user-scheduler", "v1.30.14", ("plugins.filter",))


def test_no_name_is_the_default_scheduler() -> None:
    assert Schedulers().judge(["", "default-scheduler"]) == (DefaultScheduler(),)


def test_a_scheduler_that_only_scores_differently_is_trusted_with_its_version() -> None:
    schedulers = Schedulers(chart=HARMLESS)

    assert schedulers.judge(["jhub-user-scheduler"]) == (
        OfChart("jhub-user-scheduler", "v1.30.14"),
    )
    assert schedulers.trusted >= {"default-scheduler", "jhub-user-scheduler"}
    assert schedulers.version("jhub-user-scheduler") == "v1.30.14"


def test_a_scheduler_that_may_filter_differently_is_not() -> None:
    schedulers = Schedulers(chart=CHANGED)

    assert schedulers.judge(["jhub-user-scheduler"]) == (
        UnknownScheduler("jhub-user-scheduler", ("plugins.filter",)),
    )
    assert "jhub-user-scheduler" not in schedulers.trusted


def test_the_administrator_s_word_counts_before_the_values() -> None:
    schedulers = Schedulers(["jhub-user-scheduler"], CHANGED)

    assert schedulers.judge(["jhub-user-scheduler"]) == (Declared("jhub-user-scheduler"),)
    assert schedulers.trusted >= {"default-scheduler", "jhub-user-scheduler"}
    assert schedulers.version("jhub-user-scheduler") == "v1.30.14"


@pytest.mark.parametrize(
    ("name", "provider"),
    [("gke.io/optimize-utilization-scheduler", "GKE"), ("bin-packing-scheduler", "Gardener")],
)
def test_a_provider_s_profile_that_only_scores_differently_is_known_by_its_name(
    name: str, provider: str
) -> None:
    assert Schedulers().judge([name]) == (OfProvider(name, provider),)
    assert Schedulers().trusted == {DEFAULT_SCHEDULER, *ONLY_SCORING}
    assert Schedulers([name]).judge([name]) == (Declared(name),)


@pytest.mark.parametrize(
    "name",
    [
        "gke.io/first-fit",
        "gke.io/topology-aware-auto",
        "hami-scheduler",
        "kai-scheduler",
        "koord-scheduler",
        "runai-scheduler",
        "stork",
        "yunikorn",
    ],
)
def test_a_scheduler_that_admission_sets_and_that_places_by_rules_of_its_own_stays_unknown(
    name: str,
) -> None:
    assert Schedulers().judge([name]) == (UnknownScheduler(name),)
    assert name not in Schedulers().trusted


def test_nothing_is_assumed_about_another_scheduler() -> None:
    schedulers = Schedulers(chart=HARMLESS)

    assert schedulers.judge(["volcano", "", "volcano"]) == (
        UnknownScheduler("volcano"),
        DefaultScheduler(),
    )
    assert schedulers.version("volcano") is None
    assert "volcano" not in schedulers.trusted
