"""Verdicts on a few newly generated clusters; `make live` compares hundreds."""

from __future__ import annotations

import os
import secrets

import pytest

from localcluster import LocalCluster
from tests.scheduling.generators import FAMILIES
from tests.scheduling.live.report import compare_family, keep, world_in

CASES_A_FAMILY = 4
SEED = int(os.environ.get("LIVE_SEED", secrets.randbelow(10**9)))


@pytest.mark.parametrize("family", FAMILIES)
async def test_the_verdict_matches_the_scheduler(bare_cluster: LocalCluster, family: str) -> None:
    print(f"LIVE_SEED={SEED}")

    async with world_in(bare_cluster) as world:
        report = await compare_family(world, family, range(SEED, SEED + CASES_A_FAMILY))

    assert not report.differences, keep(report.differences)
