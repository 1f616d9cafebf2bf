import pytest

from gpuspawner.kube.objects import convert
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.scheduling.requests import (
    allocatable,
    held,
    is_device,
    is_extended,
    is_scalar,
    pod_requests,
)
from gpuspawner.scheduling.rules import DEFAULT_RULES, Rules
from tests.unit.makers.objects import pod


def container(cpu=None, name="c", **more):
    return {"name": name, "resources": {"requests": {"cpu": cpu} if cpu else {}, **more}}


def parsed(**spec):
    return convert("Pod", pod(**spec))


def cpu_of(**spec):
    return pod_requests(parsed(**spec), DEFAULT_RULES).get("cpu")


def test_pod_level_resources_replace_the_sum():
    spec = {"containers": [container("1")], "resources": {"requests": {"cpu": "3"}}}
    assert cpu_of(**spec) == 3000
    assert pod_requests(parsed(**spec), Rules.of_version("1.33"))["cpu"] == 1000


def test_a_limit_without_a_request_counts_as_the_request():
    spec = {"containers": [container(limits={"cpu": "2", "nvidia.com/gpu": "1"})]}
    assert pod_requests(parsed(**spec), DEFAULT_RULES) == {"cpu": 2000, "nvidia.com/gpu": 1}


def test_an_invalid_quantity_is_an_error():
    with pytest.raises(QuantityError):
        cpu_of(containers=[container("much")])


@pytest.mark.parametrize(
    ("resource", "counts"),
    [
        ("nvidia.com/gpu", True),
        ("nvidia.com/mig-1g.5gb", True),
        ("hugepages-2Mi", True),
        ("attachable-volumes-aws-ebs", True),
        ("x.kubernetes.io/thing", True),
        ("gpu", False),
        ("requests.nvidia.com/gpu", False),
        ("Nvidia.com/gpu", False),
        ("nvidia.com/gpu/x", False),
        ("nvidia.com/", False),
    ],
)
def test_only_resources_that_the_scheduler_knows_count(resource, counts):
    assert is_scalar(resource) is counts
    assert ("nvidia.com/gpu" in allocatable({"nvidia.com/gpu": "2", resource: "1"})) is True
    assert (resource in allocatable({resource: "1"})) is counts


def test_extended_resources_are_those_of_devices():
    assert is_extended("nvidia.com/gpu")
    assert not is_extended("hugepages-2Mi")
    assert not is_extended("cpu")


@pytest.mark.parametrize(
    ("resource", "is_one"),
    [
        ("nvidia.com/gpu", True),
        ("alpha.kubernetes.io/nvidia-gpu", True),
        ("deviceclass.resource.kubernetes.io/gpu", True),
        ("nvidia.com/gpu/x", False),
        ("requests.nvidia.com/gpu", False),
        ("hugepages-2Mi", False),
        ("attachable-volumes-aws-ebs", False),
        ("memory", False),
    ],
)
def test_devices_are_what_the_scheduler_counts_in_some_domain(resource, is_one):
    assert is_device(resource) is is_one


INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}


@pytest.mark.parametrize(
    ("version", "status", "conditions", "cpu"),
    [
        ("1.36", {"resources": {"requests": {"cpu": "1"}}}, (), 2000),
        ("1.36", {"resources": {"requests": {"cpu": "1"}}}, (INFEASIBLE,), 1000),
        # An allocation alone counts only since 1.37.
        ("1.36", {"allocatedResources": {"cpu": "3"}}, (), 2000),
        ("1.37", {"allocatedResources": {"cpu": "3"}}, (), 3000),
        ("1.37", {"allocatedResources": {"cpu": "1"}}, (INFEASIBLE,), 1000),
    ],
)
def test_what_a_pod_being_resized_holds(version, status, conditions, cpu):
    now = {"containerStatuses": [{"name": "c", **status}], "conditions": conditions}
    asked = parsed(containers=[container("2")], status=now)
    assert held(asked, Rules.of_version(version)) == {"cpu": cpu}


def test_a_pod_level_limit_counts_as_the_request_if_no_container_requests_it():
    limits = {"limits": {"cpu": "4", "hugepages-2Mi": "4Mi"}}
    assert cpu_of(containers=[container()], resources=limits) == 4000
    assert cpu_of(containers=[container("1")], resources=limits) == 1000
    both = {**limits, "requests": {"cpu": "2"}}
    assert cpu_of(containers=[container("1")], resources=both) == 2000
    huge = {"requests": {"hugepages-2Mi": "2Mi"}}
    spec = parsed(containers=[{"name": "c", "resources": huge}], resources=limits)
    assert pod_requests(spec, DEFAULT_RULES)["hugepages-2Mi"] == 4 * 2**20
    assert "cpu" not in pod_requests(spec, Rules.of_version("1.33"))
