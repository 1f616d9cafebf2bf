"""Fleet files: the nodes that they define, and the errors about invalid ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from localcluster import (
    ClusterAutoscaler,
    Fleet,
    FleetError,
    InstanceType,
    Karpenter,
    NodeGroup,
    NodePool,
    Requirement,
    Scaling,
    Taint,
    fleet,
)
from localcluster.clusterautoscaler.running import fleet_data

T4 = {
    "name": "t4",
    "count": 2,
    "labels": {"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"},
    "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}],
    "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "2"},
}


def one(**changes: object) -> dict[str, Any]:
    group = {**T4, **changes}
    return {"nodes": [{key: value for key, value in group.items() if value is not None}]}


def scaled_by(autoscaler: object) -> dict[str, Any]:
    return {**one(), "autoscaler": autoscaler}


def karpenter(**changes: object) -> dict[str, Any]:
    return scaled_by({"name": "karpenter", "instance_types": [], "node_pools": [], **changes})


def test_a_group_has_numbered_nodes() -> None:
    parsed = fleet.parse(one())

    assert list(parsed.node_names()) == ["t4-0", "t4-1"]
    assert parsed.groups[0].taints == (Taint("nvidia.com/gpu", "present", "NoSchedule"),)
    assert parsed.groups[0].allocatable["nvidia.com/gpu"] == "2"


def test_labels_and_taints_may_be_left_out() -> None:
    parsed = fleet.parse(one(labels=None, taints=None))

    assert parsed == Fleet((NodeGroup("t4", 2, parsed.groups[0].allocatable),))


def test_unquoted_numbers_are_quantities() -> None:
    parsed = fleet.parse(one(allocatable={"cpu": 8, "memory": 1.5, "pods": 110}))

    assert parsed.groups[0].allocatable == {"cpu": "8", "memory": "1.5", "pods": "110"}


def test_a_fleet_names_its_autoscaler_and_how_far_a_group_grows() -> None:
    autoscaler = {"name": "cluster-autoscaler", "scan_seconds": 2}
    parsed = fleet.parse(
        {**one(scaling={"max_size": 4, "provision_seconds": 30}), "autoscaler": autoscaler}
    )

    assert parsed.autoscaler == ClusterAutoscaler(scan_seconds=2.0)
    assert parsed.groups[0].scaling == Scaling(max_size=4, provision_seconds=30.0)


def test_the_played_autoscaler_reads_back_the_fleet_that_it_is_given() -> None:
    scaling = {"max_size": 4, "min_size": 1, "stock": 2, "error_code": "QUOTA_EXCEEDED"}
    autoscaler = {"name": "cluster-autoscaler", "scale_down_seconds": 60}
    given = fleet.parse({**one(scaling=scaling), "autoscaler": autoscaler})
    assert isinstance(given.autoscaler, ClusterAutoscaler)

    written = yaml.safe_dump(fleet_data(given.groups, given.autoscaler))

    assert fleet.parse(yaml.safe_load(written)) == given


def test_a_fleet_gives_karpenter_machines_and_pools() -> None:
    pool = {
        "name": "gpu",
        "requirements": [{"key": "size", "operator": "In", "values": ["big"]}],
        "limits": {"nvidia.com/gpu": 2},
    }
    kind = {"name": "g2", "resources": {"cpu": 8}, "labels": {"size": "big"}, "is_sold_out": True}

    parsed = fleet.parse(karpenter(instance_types=[kind], node_pools=[pool], device_seconds=5))

    assert parsed.autoscaler == Karpenter(
        (InstanceType("g2", {"cpu": "8"}, {"size": "big"}, is_sold_out=True),),
        (NodePool("gpu", (Requirement("size", "In", ("big",)),), limits={"nvidia.com/gpu": "2"}),),
        device_seconds=5.0,
    )


@pytest.mark.parametrize("name", fleet.names())
def test_every_fleet_of_the_package_can_be_read(name: str) -> None:
    assert list(fleet.load(name).node_names())


def test_a_fleet_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(one(count=1)))

    assert list(fleet.load(path).node_names()) == ["t4-0"]


BAD: list[tuple[object, str]] = [
    (None, "fleet: None is not a mapping"),
    ({}, "fleet.nodes: missing"),
    ({"nodes": {}}, "nodes: {} is not a list"),
    ({"nodes": [], "node": []}, "fleet.node: unknown; it may have nodes"),
    ({"nodes": ["t4"]}, "nodes[0]: 't4' is not a mapping"),
    (one(name=None), "nodes[0].name: missing"),
    (one(name="T4"), "nodes[0].name: 'T4' is not lower case"),
    (one(name=4), "nodes[0].name: 4 is not lower case"),
    (one(count="2"), "nodes[0].count: '2' is not a whole number"),
    (one(count=True), "nodes[0].count: True is not a whole number"),
    (one(count=-1), "nodes[0].count: -1 is not a whole number"),
    (one(count=5001), "nodes[0].count: 5001 is not a whole number from 0 to 5000"),
    (one(gpus=2), "nodes[0].gpus: unknown"),
    (one(labels={"a": True}), "nodes[0].labels.a: True is not a label value"),
    (one(labels={"a/b/c": "x"}), "nodes[0].labels: 'a/b/c' is not a name"),
    (one(labels=["a"]), "nodes[0].labels: ['a'] is not a mapping"),
    (one(taints={}), "nodes[0].taints: {} is not a list"),
    (one(taints=[{"key": "a"}]), "nodes[0].taints[0].effect: missing"),
    (one(taints=[{"key": "a", "effect": "Never"}]), "nodes[0].taints[0].effect: 'Never' is not"),
    (one(taints=[{"key": 1, "effect": "NoSchedule"}]), "nodes[0].taints[0].key: 1 is not text"),
    (one(allocatable={"cpu": "8"}), "nodes[0].allocatable.memory: missing"),
    (one(allocatable={"cpu": "8 cores"}), "nodes[0].allocatable.cpu: '8 cores' is not a quantity"),
    (one(allocatable={"cpu": True}), "nodes[0].allocatable.cpu: True is not a quantity"),
    (one(allocatable={"cpu": -1}), "nodes[0].allocatable.cpu: -1 is not a quantity"),
    ({"nodes": [T4, {**T4, "count": 1}]}, "nodes[1].name: a second node would be named t4-0"),
    (one(scaling={}), "nodes[0].scaling.max_size: missing"),
    (one(scaling={"max_size": -1}), "nodes[0].scaling.max_size: -1 is not a whole number"),
    (one(scaling={"max_size": 1, "stock": 0.5}), "nodes[0].scaling.stock: 0.5 is not a whole"),
    (
        one(scaling={"max_size": 1, "device_seconds": "5"}),
        "nodes[0].scaling.device_seconds: '5' is not a number of seconds",
    ),
    (scaled_by({}), "autoscaler.name: None is not one of cluster-autoscaler, karpenter"),
    (scaled_by({"name": "magic"}), "autoscaler.name: 'magic' is not one of"),
    (
        scaled_by({"name": "cluster-autoscaler", "node_pools": []}),
        "autoscaler.node_pools: unknown; it may have name, scan_seconds",
    ),
    (scaled_by({"name": "karpenter", "node_pools": []}), "autoscaler.instance_types: missing"),
    (karpenter(node_pools=[{}]), "autoscaler.node_pools[0].name: missing"),
    (
        karpenter(node_pools=[{"name": "p", "requirements": [{"key": "k", "operator": "Is"}]}]),
        "autoscaler.node_pools[0].requirements[0].operator: 'Is' is not one of In, NotIn",
    ),
    (
        karpenter(instance_types=[{"name": "t", "resources": {}, "is_sold_out": "no"}]),
        "autoscaler.instance_types[0].is_sold_out: 'no' is not true or false",
    ),
    (
        karpenter(registration_seconds=0.5),
        "autoscaler.registration_seconds: 0.5 is not a whole number",
    ),
]


@pytest.mark.parametrize(("data", "message"), BAD, ids=[message for _, message in BAD])
def test_an_error_names_the_field(data: object, message: str) -> None:
    with pytest.raises(FleetError) as raised:
        fleet.parse(data)

    assert str(raised.value).startswith(message)


def test_the_error_about_an_unknown_fleet_lists_the_known_ones() -> None:
    with pytest.raises(FleetError, match=r"neither a readable file .* nor one of aks, demo, eks"):
        fleet.load("gkee")


def test_a_file_that_is_not_yaml_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("nodes: [")

    with pytest.raises(FleetError, match=r"mine\.yaml"):
        fleet.load(path)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.sampled_from(["nodes", *T4, "cpu", "memory", "key"]), inner)
    ),
)


@given(plain)
def test_any_data_is_a_fleet_or_raises_a_fleet_error(data: object) -> None:
    try:
        parsed = fleet.parse(data)
    except FleetError:
        return

    assert isinstance(parsed, Fleet)


@given(st.sampled_from(sorted(T4)), plain)
def test_any_field_is_accepted_or_raises_an_error_that_names_it(field: str, value: object) -> None:
    said = ""
    try:
        fleet.parse({"nodes": [{**T4, field: value}]})
    except FleetError as error:
        said = str(error)

    assert not said or said.startswith(f"nodes[0].{field}")
