"""What a pod's annotations ask to go slowly or wrong."""

from __future__ import annotations

from dataclasses import fields
from math import inf
from pathlib import Path

import pytest

from localcluster import nodes
from localcluster.agent.admission import DEVICE_ERRORS
from localcluster.agent.faults import PREFIX, Faults, faults_of
from localcluster.agent.registry import ERRORS
from localcluster.client import Object

PAGE = Path(__file__).parents[3] / "docs" / "contributing" / "local-faults.md"


def annotated(**annotations: str) -> Object:
    names = {f"{PREFIX}{key.replace('_', '-')}": text for key, text in annotations.items()}
    return {"metadata": {"annotations": names}}


def test_a_pod_without_annotations_starts_at_once_and_well() -> None:
    faults = faults_of({"metadata": {}})

    assert (faults.start_after, faults.attached_elsewhere_seconds) == (0, 0)
    assert (faults.pull_seconds, faults.attach_seconds, faults.exits_after) == (None, None, None)
    said = [faults.pull_error, faults.attach_error, faults.mount_error, faults.device_error]
    assert not any([*said, faults.create_error, faults.run_error, faults.hangs])


def test_seconds_and_times_may_be_forever() -> None:
    faults = faults_of(annotated(pull_seconds="forever", pull_error_times="2", exits_after="0"))

    assert (faults.pull_seconds, faults.pull_error_times) == (inf, 2)
    assert (faults.exits_after, faults.exit_times) == (0, inf)


def test_what_should_be_a_number_must_be_one() -> None:
    with pytest.raises(ValueError, match="soon"):
        faults_of(annotated(pull_seconds="soon"))


OF_PODS = {field.name.replace("_", "-") for field in fields(Faults)}
OF_NODES = {
    name.removeprefix(PREFIX)
    for name in (
        nodes.DEVICES_AFTER,
        nodes.HIDDEN_DEVICES,
        nodes.LOST_DEVICES,
        nodes.LOW_DISK,
        nodes.LOW_MEMORY,
        nodes.PULL_SECONDS,
        nodes.SILENT,
        nodes.UNHEALTHY_DEVICES,
    )
}


@pytest.mark.parametrize("name", sorted(OF_PODS | OF_NODES | {*ERRORS, *DEVICE_ERRORS}))
def test_the_page_on_the_local_cluster_knows_each_fault(name: str) -> None:
    assert f"`{name}`" in PAGE.read_text()
