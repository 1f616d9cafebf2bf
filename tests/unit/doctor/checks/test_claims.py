"""What the doctor says of devices that drivers allocate by claims."""

import pytest

from gpuspawner.doctor.checks import claims
from tests.unit.makers.files import Files, tried_on
from tests.unit.makers.worlds import GPU, labelled, node

T4 = {"t4": {"display_name": "T4", "node_selector": {"gpu": "t4"}}}
SERVES = {"metadata": {"name": "gpu.nvidia.com"}, "spec": {"extendedResourceName": GPU}}


async def found(folder, version, *classes, drivers=(), **kube):
    files = Files(folder, [labelled(node("n", 1), {"gpu": "t4"})])
    files.put("deviceclasses", classes)
    hub, tried = await tried_on(folder, kube=kube, accelerators=T4, scheduler_version=version)
    return list(claims.check(hub.state, tried, drivers))


@pytest.mark.parametrize(("version", "ids"), [("1.33", ["scheduler-claims"]), ("1.34", [])])
async def test_a_scheduler_older_than_claims_is_named(tmp_path, version, ids):
    # Claims come by a setting for every pod, as KubeSpawner has no field for them.
    claiming = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "mine"}]}

    told = await found(tmp_path, version, extra_pod_config=claiming)

    assert [it.id for it in told] == ids


@pytest.mark.parametrize(
    ("version", "severity", "said"),
    [
        ("1.35", "warning", "uses only device plugins"),
        ("1.36", "fine", "t count all that is free"),
    ],
)
async def test_a_device_class_that_serves_an_offered_resource_is_named(
    tmp_path, version, severity, said
):
    other = {"metadata": {"name": "nic"}, "spec": {"extendedResourceName": "example.com/nic"}}

    [finding] = await found(tmp_path, version, SERVES, other)

    assert (finding.id, finding.severity) == ("device-class", severity)
    assert f"The DeviceClass gpu.nvidia.com serves {GPU}" in finding.text
    assert said in finding.text


async def test_a_device_plugin_and_a_driver_of_claims_on_one_node_are_named(tmp_path):
    assert await found(tmp_path, "1.36", drivers={("m", "gpu.nvidia.com"), ("n", "nic.x")}) == []

    [finding] = await found(tmp_path, "1.36", drivers={("n", "gpu.nvidia.com")})

    assert finding.id == "plugin-and-driver"
    assert "gpu.nvidia.com both give the GPUs of n," in finding.text
