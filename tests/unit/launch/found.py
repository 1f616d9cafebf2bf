"""What tests of troubles look for, and the events of a pull that fails."""

from __future__ import annotations

from gpuspawner.launch.trouble import Kind, Trouble
from tests.unit.launch.starts import IMAGE, NOTEBOOK, at, event, warning

RESOLVE = (
    f'rpc error: code = NotFound desc = failed to pull and unpack image "{IMAGE}": failed to'
    f' resolve reference "{IMAGE}": {IMAGE}: not found'
)
PULL_FAILS = [
    event("Pulling", f'Pulling image "{IMAGE}"', 10, container=NOTEBOOK),
    warning("Failed", f'Failed to pull image "{IMAGE}": {RESOLVE}', 12, container=NOTEBOOK),
    warning("Failed", "Error: ErrImagePull", 12, container=NOTEBOOK),
    warning("BackOff", f'Back-off pulling image "{IMAGE}"', 13, container=NOTEBOOK),
    warning("Failed", "Error: ImagePullBackOff", 14, container=NOTEBOOK),
]
RUNS = {"state": {"running": {"startedAt": at(60)}}, "ready": True}


def only(found: tuple[Trouble, ...]) -> Trouble:
    assert len(found) == 1, found
    return found[0]


def kinds(found: tuple[Trouble, ...]) -> list[Kind]:
    return [it.kind for it in found]
