"""What one page has found out is shown to others only if it holds for them, whatever is offered."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gpuspawner.cluster.health import Stale
from tests.unit.makers.hubs import A100, OF_ANN, StillHub, named, repelling
from tests.unit.makers.profile_clusters import TWO_GPUS
from tests.unit.makers.profile_lists import CPU, GPU
from tests.unit.makers.worlds import NAMESPACE, pod

SOURCES = {
    "accelerators": ({"accelerators": {"a100": A100}}, 'data-accelerator="a100" data-state="free"'),
    "profiles": ({"profile_list": [CPU, GPU]}, ">Free<"),
}


@pytest.fixture(params=SOURCES.values(), ids=SOURCES)
def is_free(request: pytest.FixtureRequest) -> Callable[..., Awaitable[bool]]:
    """Return a function that asks whether a user's page shows a GPU as free."""
    offers, word = request.param

    async def ask(hub: StillHub, name: str, **traits: Any) -> bool:
        spawner: Any = named(hub.spawner(**offers, **traits), name)
        return word in await spawner.gpuspawner_gates.sources.current.form()

    return ask


OWN_NODE = {"extra_pod_config": {"nodeSelector": {"owner": "{username}"}}}


@pytest.mark.parametrize(
    ("of_ann", "of_bob"),
    [
        ({}, {"node_selector": {"room": "b"}}),
        ({}, {"mem_guarantee": "100T"}),
        (OWN_NODE, OWN_NODE),
    ],
    ids=["a label", "memory", "a name in the pods"],
)
async def test_users_whose_pods_differ_share_no_state(hub_with, is_free, of_ann, of_bob) -> None:
    hub = hub_with(OF_ANN)

    assert await is_free(hub, "ann", **of_ann)
    assert not await is_free(hub, "bob", **of_bob)


async def test_users_share_nothing_if_pods_select_each_other_by_labels(hub_with, is_free) -> None:
    hub = hub_with(TWO_GPUS, repelling("hub.jupyter.org/username"))

    assert await is_free(hub, "ann", namespace=NAMESPACE)
    assert not await is_free(hub, "bob", namespace=NAMESPACE)


async def test_a_page_shows_what_has_changed_in_the_cluster(hub_with, is_free) -> None:
    hub = hub_with(TWO_GPUS)
    assert await is_free(hub, "ann")

    hub.view.put("Pod", pod("somebody-s", 2, on="a"))

    assert not await is_free(hub, "bob")


async def test_a_page_shows_that_the_view_is_no_longer_live(hub_with, is_free) -> None:
    hub = hub_with(TWO_GPUS)
    assert await is_free(hub, "ann")

    hub.view.now = Stale(60, "no answer")

    assert not await is_free(hub, "bob")
