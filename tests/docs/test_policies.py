"""The how-to about policies: its examples are valid, and its table says what the code does."""

from __future__ import annotations

import ast
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from traitlets.config import Config

from gpuspawner.offers.offers import Offers
from gpuspawner.policies.allowed_offers import Sizes, narrow
from gpuspawner.policies.owner import Owner
from gpuspawner.policies.policies import Measure, Policies, What, lifetime
from gpuspawner.policies.policies_config import read_policies

PAGE = (Path(__file__).parents[2] / "docs/how-to/policies.md").read_text()
OFFERS = Offers.parse(
    accelerators={
        key: {"node_selector": {"gpu": key}, "counts": [1, 2, 4, 8]} for key in ("a100", "t4", "l4")
    }
)
ANN = Owner("ann", frozenset({"course"}))
NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


def examples() -> list[dict[str, Any]]:
    found = []
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        c = Config()
        exec(code, {"c": c})
        found.append(c.GPUSpawner.policies)
    return found


@pytest.mark.parametrize("policies", examples())
def test_each_example_is_valid(policies: dict[str, Any]) -> None:
    assert read_policies(policies, {}, OFFERS)


def test_the_chart_values_say_the_same_as_the_python_lines() -> None:
    [values] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)

    assert yaml.safe_load(values)["hub"]["config"]["GPUSpawner"]["policies"] == examples()[0]


def row(number: int) -> Policies:
    rows = re.findall(r"^\| `(\{.*?\})` \|", PAGE, re.MULTILINE)
    return read_policies(ast.literal_eval(rows[number]), {}, OFFERS)


def most(policies: Policies, owner: Owner) -> int:
    """The most GPUs in one server, by the form."""
    left = narrow(OFFERS, policies.applying(owner, NOW), Sizes({}))
    return max((max(it.counts) for it in left.accelerators.values()), default=0)


@pytest.mark.parametrize(("number", "gpus"), [(0, 1), (1, 1), (2, 4), (5, 4)])
def test_the_smallest_limit_of_all_that_apply_counts(number: int, gpus: int) -> None:
    assert most(row(number), ANN) == gpus


def test_only_what_all_leave_is_on_offer() -> None:
    left = narrow(OFFERS, row(3).applying(ANN, NOW), Sizes({}))

    assert list(left.accelerators) == ["l4"]


def test_the_shortest_lifetime_counts() -> None:
    assert lifetime(row(4).applying(ANN, NOW)) == 3600


def test_a_policy_for_some_servers_limits_only_these() -> None:
    experiment = Owner("ann", ANN.groups, server="exp-1")

    assert most(row(6), experiment) == 2
    assert most(row(6), ANN) == 8
    assert Measure(What.GPUS) in {it.measure for it in row(6).policies[0].limits}
