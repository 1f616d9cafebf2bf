"""What the doctor says of a server that it has started; a real hub is in tests/hub/doctor."""

from __future__ import annotations

from gpuspawner.doctor.trial import _facts
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
