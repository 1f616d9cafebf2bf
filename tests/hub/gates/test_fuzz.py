"""A short run of `make fuzz`: no request breaks anything or leaks through."""

from __future__ import annotations

from pathlib import Path

import pytest

from localcluster import LocalCluster
from tests.fixtures.cluster import AddNodes
from tests.fuzz.run import run
from tests.hub.option_sets import FLEET

SEED = 20261121
COUNT = 1000


@pytest.fixture
def cluster(bare_cluster: LocalCluster) -> LocalCluster:
    bare_cluster.check()
    return bare_cluster


async def test_fuzzed_requests_are_answered_and_leak_nothing(
    cluster: LocalCluster, add_nodes: AddNodes, tmp_path: Path
) -> None:
    add_nodes(FLEET)

    report = await run(cluster, tmp_path, seed=SEED, count=COUNT)

    assert report.findings == [], f"seed {SEED}"
    assert report.answers.keys() >= {"made", "invalid-options"}
