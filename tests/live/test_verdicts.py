"""Hundreds of generated clusters, each answered by us and by the real kube-scheduler."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator

import pytest

from localcluster import LocalCluster
from tests.scheduling.generators import FAMILIES
from tests.scheduling.live.report import Report, compare_family, keep, table, world_in

CASES = int(os.environ.get("LIVE_CASES", "120"))  # of each family
SEED = int(os.environ.get("LIVE_SEED", secrets.randbelow(10**9)))


@pytest.fixture(scope="module")
def reports() -> Iterator[list[Report]]:
    """The counts, printed at the end as the table of docs/explanation/evidence.md."""
    counted: list[Report] = []
    yield counted
    print(f"\nLIVE_SEED={SEED} LIVE_CASES={CASES}\n{table(counted)}")


@pytest.mark.parametrize("family", FAMILIES)
async def test_no_verdict_differs_from_the_scheduler(
    bare_cluster: LocalCluster, reports: list[Report], family: str
) -> None:
    async with world_in(bare_cluster) as world:
        report = await compare_family(world, family, range(SEED, SEED + CASES))
    reports.append(report)

    assert not report.differences, keep(report.differences)
