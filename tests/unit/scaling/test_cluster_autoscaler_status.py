"""Cluster Autoscaler's status."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gpuspawner.scaling.cluster_autoscaler_status import is_after_a_look, node_groups, written
from tests.unit.makers.groups import BEFORE_1_30

# Hostile texts that aren't read in one pass take hours.
pytestmark = [pytest.mark.each_python, pytest.mark.timeout(60)]

YAML = """\
time: 2026-01-01 00:00:00 +0000 UTC
autoscalerStatus: Running
clusterWide:
  health:
    status: Healthy
nodeGroups:
- name: gke-c-gpu-1a2b3c4d-grp
  health:
    status: Healthy
    nodeCounts:
      registered:
        total: 1
        ready: 1
        notStarted: 0
        unready:
          total: 0
          resourceUnready: 0
      longUnregistered: 0
      unregistered: 1
    cloudProviderTarget: 2
    minSize: 0
    maxSize: 4
    lastProbeTime: "2026-01-01T00:00:00Z"
  scaleUp:
    status: InProgress
- name: "https://www.googleapis.com/compute/v1/projects/p/zones/z/instanceGroups/gke-c-cpu-5e6f7a8b-grp"
  health:
    status: Unhealthy
    cloudProviderTarget: 0
    minSize: 0
    maxSize: 3
  scaleUp:
    status: Backoff
    backoffInfo:
      errorCode: QUOTA_EXCEEDED
      errorMessage: "Instance 'x' creation failed: no & left *here*"
"""


def test_a_status_is_read() -> None:
    groups = node_groups(YAML)

    assert groups is not None
    assert groups[0].name == "gke-c-gpu-1a2b3c4d-grp"
    health, counts = groups[0].health, groups[0].health.node_counts
    assert (health.max_size, health.cloud_provider_target, health.status) == (4, 2, "Healthy")
    assert (counts.registered.total, counts.registered.being_deleted) == (1, 0)
    assert (counts.long_unregistered, groups[0].scale_up.status) == (0, "InProgress")
    assert groups[1].name.endswith("gke-c-cpu-5e6f7a8b-grp")
    assert (groups[1].health.status, groups[1].scale_up.status) == ("Unhealthy", "Backoff")
    info = groups[1].scale_up.backoff_info
    assert info.error_code == "QUOTA_EXCEEDED"
    assert info.error_message == "Instance 'x' creation failed: no & left *here*"


def test_a_cluster_without_groups_has_none() -> None:
    assert node_groups("autoscalerStatus: Initializing\n") == ()


@pytest.mark.parametrize(
    "status",
    [
        "",
        "nonsense",
        "- a\n- b\n",
        "nodeGroups: []\n",
        "autoscalerStatus: [1]\n",
        "autoscalerStatus: Running\nnodeGroups: {}\n",
        "autoscalerStatus: Running\nnodeGroups: [3]\n",
        "autoscalerStatus: Running\nnodeGroups:\n- name: a\n  health: 3\n",
        "autoscalerStatus: &a Running\nnodeGroups: *a\n",
        "a: &a [x,x]\nb: &b [*a,*a]\nautoscalerStatus: Running\n",
        "autoscalerStatus: !!python/object/apply:os.system [ls]\n",
        'autoscalerStatus: !!int ""\n',
        "autoscalerStatus: !!bool x\nnodeGroups: {}\n",
        "autoscalerStatus: Running\n? [a]\n: b\n",
        "{" * 5000,
        "autoscalerStatus: Running\nnodeGroups: " + "[" * 100_000,  # a loader ends the process
        "autoscalerStatus: Running\nnodeGroups: " + "[" * 20_000,
        "\0",
        BEFORE_1_30,
        YAML[: len(YAML) // 2] + "\n  :::",
        YAML.replace("    maxSize: 3\n", ""),
        YAML.replace("maxSize: 3", "maxSize: many"),
        YAML + "# " + "x" * 400_000,  # it may be cut
    ],
    ids=range(23),
)
def test_a_status_that_is_hostile_cut_or_unreadable_in_one_group_is_unknown(status: str) -> None:
    assert node_groups(status) is None


def test_an_error_code_may_be_a_number() -> None:
    groups = node_groups(YAML.replace("QUOTA_EXCEEDED", '"404"'))

    assert groups is not None
    assert groups[1].scale_up.backoff_info.error_code == "404"


@pytest.mark.parametrize(
    ("text", "when"),
    [
        (YAML, datetime(2026, 1, 1, tzinfo=UTC)),
        (
            "time: 2026-01-01 00:00:00.123456789 +0200 CEST",
            datetime(2025, 12, 31, 22, tzinfo=UTC),
        ),
        ("", None),
        ("time: yesterday", None),
        ("time: 2026-99-01 00:00:00 +0000 UTC", None),
    ],
    ids=["in UTC", "elsewhere", "nothing", "a word", "no month"],
)
def test_a_status_may_say_when_it_was_written(text: str, when: datetime | None) -> None:
    assert written(text) == when


@pytest.mark.parametrize(
    ("text", "has_looked"),
    [
        (YAML, True),
        (YAML.replace("Running", "Initializing"), False),
        (YAML.replace("Healthy", "Unhealthy", 1), False),
    ],
    ids=["it runs", "it starts", "too many nodes aren't ready"],
)
def test_a_status_says_whether_the_autoscaler_has_looked_at_pods(text, has_looked) -> None:
    assert is_after_a_look(text) is has_looked
