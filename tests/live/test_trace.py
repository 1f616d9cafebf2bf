"""A production cluster's trace on the real scheduler: the same yes and no for every request."""

from __future__ import annotations

import pytest

from localcluster import LocalCluster
from tests.scheduling.live.report import world_in
from tests.scheduling.live.trace import SCENARIOS, Scenario, replay, table


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.title)
async def test_no_request_is_refused_or_let_through_wrongly(
    bare_cluster: LocalCluster, scenario: Scenario
) -> None:
    async with world_in(bare_cluster) as world:
        figures = await replay(world, scenario)
    print(table({scenario.title: figures}))

    assert figures.wrong == []
    assert figures.same_message == figures.refused_rightly
