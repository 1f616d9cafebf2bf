"""What the doctor says of a server that it has started; a real hub is in tests/hub/doctor."""

from __future__ import annotations

import pytest

from gpuspawner.doctor.hub_api import HubApiError, NoHubError
from gpuspawner.doctor.trial import _facts, _not_started
from tests.unit.makers.starts import CLOUD_METADATA, IMAGE, NOTEBOOK, TOOLS, event, start


def test_it_says_on_which_node_and_how_long_each_image_was_pulled() -> None:
    events = [
        event("Pulled", f'Container image "{TOOLS}" already present on machine', 3,
              container=CLOUD_METADATA),
        event("Pulled", f'Successfully pulled image "{IMAGE}" in 1m3.25s', 70, container=NOTEBOOK),
    ]  # fmt: skip

    assert [*_facts(start(node="t4-0"), events)] == [
        "on the node t4-0 without GPUs.",
        f"The image {TOOLS} was on the node.",
        f"The image {IMAGE} was pulled in 63.2 s.",
    ]


@pytest.mark.parametrize(
    ("refused", "advised"),
    [
        (HubApiError(403, "no"), "Give the token the scope servers!user=ann,"),
        (HubApiError(404, "no"), "Give the token the scope servers!user=ann,"),
        (HubApiError(503, "no"), "Read the hub's log,"),
        (NoHubError(503, "no"), "Look whether the hub is up, and whether --hub-api names its"),
    ],
)
def test_the_advice_is_about_what_went_wrong(refused: HubApiError, advised: str) -> None:
    found = _not_started("ann", refused)

    assert found.text == "ann's server didn't start: no"
    assert found.advice.startswith(advised)
