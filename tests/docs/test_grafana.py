"""The dashboard and the alert rules name metrics and labels that the hub has."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from gpuspawner.troubles.facts import Happened
from gpuspawner.use.census import Held

FOLDER = Path(__file__).parents[2] / "docs" / "grafana"
PREFIX = "jupyterhub_gpuspawner_"
METRICS = {
    "gpus": {"accelerator", "state"},
    "line_servers": set(),
    "line_duration_seconds_bucket": {"le"},
    "start_phase_duration_seconds_bucket": {"le", "phase"},
    "servers_total": {"happened", "reason"},
    "dry_runs_total": set(),
    "view_age_seconds": set(),
    "idle_gpu_seconds_total": {"accelerator"},
}  # fmt: skip


RULES = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"][0]["rules"]


def expressions() -> list[str]:
    dashboard = json.loads((FOLDER / "gpuspawner.json").read_text())
    shown = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    return shown + [rule["expr"] for rule in RULES]


@pytest.mark.parametrize("expression", expressions())
def test_an_expression_names_metrics_and_labels_that_there_are(expression: str) -> None:
    named = re.findall(rf"{PREFIX}(\w+)(?:\{{([^}}]*)\}})?", expression)

    assert named
    for metric, selectors in named:
        labels = dict(re.findall(r'(\w+)[=!]~?"([^"]*)"', selectors))
        assert set(labels) <= METRICS[metric]
        assert labels.get("state", "free") in Held._fields
        happened = labels.get("happened", "granted").split("|")
        assert set(happened) <= {it.value for it in Happened}


def test_no_stack_shows_an_overruled_start_twice() -> None:
    """Such a start is granted, too."""
    panels = json.loads((FOLDER / "gpuspawner.json").read_text())["panels"]
    stacked = [it for it in panels if "stacking" in it["fieldConfig"]["defaults"].get("custom", {})]

    assert stacked
    assert not [expr for it in stacked for t in it["targets"] if "overruled" in (expr := t["expr"])]


def test_an_alert_about_servers_that_end_is_not_named_for_their_starts_alone() -> None:
    """A server also ends after its start, by a crash or with its node."""
    about_ends = [rule["alert"] for rule in RULES if f'"{Happened.ENDED}"' in rule["expr"]]

    assert about_ends == ["GpuspawnerServersFail"]
