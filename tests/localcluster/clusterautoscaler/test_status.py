"""The status, field by field as the real one writes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import yaml

from localcluster.clusterautoscaler.status import Counts, GroupStatus, Report, go_time

NOW = 1_700_800_099.5
L4 = GroupStatus(
    name="l4",
    counts=Counts(ready=1, not_started=1, unregistered=1),
    target=3,
    min_size=0,
    max_size=4,
    scale_up="InProgress",
    error_code="",
    error_message="",
    idle=0,
)
CLUSTER = Counts(ready=2, not_started=1, unregistered=1)


def read(report: Report, group: GroupStatus, now: float) -> Any:
    return yaml.safe_load(report.yaml([group], CLUSTER, now))


def test_the_yaml_is_that_of_versions_since_1_30() -> None:
    status = read(Report(), L4, NOW)

    assert status["time"] == "2023-11-24 04:28:19.5 +0000 UTC"
    assert status["autoscalerStatus"] == "Running"
    [group] = status["nodeGroups"]
    assert group["name"] == "l4"
    assert group["health"] == {
        "status": "Healthy",
        "nodeCounts": {
            "registered": {"total": 2, "ready": 1, "notStarted": 1},
            "longUnregistered": 0,
            "unregistered": 1,
        },
        "cloudProviderTarget": 3,
        "minSize": 0,
        "maxSize": 4,
        "lastProbeTime": "2023-11-24T04:28:19.500000Z",
        "lastTransitionTime": "2023-11-24T04:28:19.500000Z",
    }
    assert group["scaleUp"]["status"] == "InProgress"
    assert "backoffInfo" not in group["scaleUp"]


def test_a_group_in_back_off_says_the_clouds_error() -> None:
    failed = replace(L4, scale_up="Backoff", error_code="QUOTA_EXCEEDED", error_message="no")

    [group] = read(Report(), failed, NOW)["nodeGroups"]

    assert group["scaleUp"]["backoffInfo"] == {"errorCode": "QUOTA_EXCEEDED", "errorMessage": "no"}


def test_a_part_keeps_the_time_of_its_last_change() -> None:
    report = Report()
    read(report, L4, NOW)
    [same] = read(report, L4, NOW + 10)["nodeGroups"]
    [changed] = read(report, replace(L4, scale_up="NoActivity"), NOW + 20)["nodeGroups"]

    assert same["scaleUp"]["lastProbeTime"] == "2023-11-24T04:28:29.500000Z"
    assert same["scaleUp"]["lastTransitionTime"] == "2023-11-24T04:28:19.500000Z"
    assert changed["scaleUp"]["lastTransitionTime"] == "2023-11-24T04:28:39.500000Z"
    assert changed["health"]["lastTransitionTime"] == "2023-11-24T04:28:19.500000Z"


def test_whole_seconds_have_no_fraction_as_in_go() -> None:
    assert go_time(1_700_800_099.0) == "2023-11-24 04:28:19 +0000 UTC"
