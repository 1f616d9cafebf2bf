"""What the doctor says of GPUs: who gives them, and whether servers see them."""

import pytest

from gpuspawner.doctor.checks import devices
from gpuspawner.messages.administrators import Severity
from tests.unit.makers.files import Files, tried_on
from tests.unit.makers.worlds import GPU, labelled, node

TYPE = "node.kubernetes.io/instance-type"
T4 = {"display_name": "T4", "node_selector": {"gpu": "t4"}}


async def found_classes(folder, type_, classes, **offer):
    Files(folder, [labelled(node("n", 1), {"gpu": "t4", TYPE: type_})])
    hub, tried = await tried_on(folder, accelerators={"t4": {**T4, **offer}})
    return list(devices.check_containers(hub.state, tried, classes))


@pytest.mark.parametrize(
    ("classes", "advice"),
    [
        (["nvidia"], "Set its runtime_class to 'nvidia' in GPUSpawner.accelerators['t4'], or the"),
        ([], "Create the RuntimeClass nvidia"),
    ],
)
@pytest.mark.parametrize("type_", ["k3s", "rke2"])
async def test_on_k3s_and_rke2_a_server_without_the_runtime_class_is_named(
    tmp_path, type_, classes, advice
):
    [finding] = await found_classes(tmp_path, type_, classes)

    assert (finding.id, finding.severity) == ("runtime-class", Severity.WARNING)
    assert finding.text.startswith("t4 has no RuntimeClass, and on k3s or RKE2 (n) no container")
    assert finding.advice.startswith(advice)


async def test_that_servers_have_the_runtime_class_is_told(tmp_path):
    [finding] = await found_classes(tmp_path, "k3s", ["nvidia"], runtime_class="nvidia")

    assert finding.severity is Severity.FINE


async def test_a_profile_gets_the_runtime_class_by_what_the_doctor_advises(tmp_path):
    """KubeSpawner has no trait for it."""
    override = {"extra_resource_limits": {GPU: "1"}, "node_selector": {"gpu": "t4"}}
    profile = {"display_name": "T4", "kubespawner_override": override}
    Files(tmp_path, [labelled(node("n", 1), {"gpu": "t4", TYPE: "k3s"})])

    hub, tried = await tried_on(tmp_path, kube={"profile_list": [profile]})
    [finding] = devices.check_containers(hub.state, tried, ["nvidia"])

    advised = "Set extra_pod_config: {'runtimeClassName': 'nvidia'} in KubeSpawner.profile_list, or"
    assert finding.advice.startswith(advised)
    override["extra_pod_config"] = {"runtimeClassName": "nvidia"}
    hub, tried = await tried_on(tmp_path, kube={"profile_list": [profile]})
    [finding] = devices.check_containers(hub.state, tried, ["nvidia"])
    assert finding.severity is Severity.FINE


async def test_elsewhere_nothing_is_said_of_runtime_classes(tmp_path):
    assert await found_classes(tmp_path, "g4dn.xlarge", ["nvidia"]) == []


SERVES = {"metadata": {"name": "gpu.nvidia.com"}, "spec": {"extendedResourceName": GPU}}


async def found_claims(folder, version, *classes, drivers=(), **kube):
    files = Files(folder, [labelled(node("n", 1), {"gpu": "t4"})])
    files.put("deviceclasses", classes)
    hub, tried = await tried_on(
        folder, kube=kube, accelerators={"t4": T4}, scheduler_version=version
    )
    return list(devices.check_claims(hub.state, tried, drivers))


@pytest.mark.parametrize(("version", "ids"), [("1.33", ["scheduler-claims"]), ("1.34", [])])
async def test_a_scheduler_older_than_claims_is_named(tmp_path, version, ids):
    # Claims come by a setting for every pod, as KubeSpawner has no field for them.
    claiming = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "mine"}]}

    told = await found_claims(tmp_path, version, extra_pod_config=claiming)

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

    [finding] = await found_claims(tmp_path, version, SERVES, other)

    assert (finding.id, finding.severity) == ("device-class", severity)
    assert f"The DeviceClass gpu.nvidia.com serves {GPU}" in finding.text
    assert said in finding.text


async def test_a_device_plugin_and_a_driver_of_claims_on_one_node_are_named(tmp_path):
    assert (
        await found_claims(tmp_path, "1.36", drivers={("m", "gpu.nvidia.com"), ("n", "nic.x")})
        == []
    )

    [finding] = await found_claims(tmp_path, "1.36", drivers={("n", "gpu.nvidia.com")})

    assert finding.id == "plugin-and-driver"
    assert "gpu.nvidia.com both give the GPUs of n," in finding.text
