"""A production cluster's trace, answered by us and by the real kube-scheduler."""

from __future__ import annotations

import pytest

from localcluster import LocalCluster
from tests.scheduling.live.report import world_in
from tests.scheduling.live.trace import SCENARIOS, Scenario, replay, table


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.title)
async def test_no_request_is_wrongly_refused_or_accepted(
    bare_cluster: LocalCluster, scenario: Scenario
) -> None:
    async with world_in(bare_cluster) as world:
        figures = await replay(world, scenario)
    print(table({scenario.title: figures}))

    assert figures.wrong == []
    assert figures.same_message == figures.refused_rightly
