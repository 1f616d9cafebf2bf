import pytest

from gpuspawner.scheduling import Rules
from gpuspawner.scheduling.failures import PortTaken
from tests.unit.makers.objects import judge, node, pod


def with_port(number, ip="", protocol="TCP", **fields):
    port = {"hostPort": number, "containerPort": 1, "hostIP": ip, "protocol": protocol}
    return pod(containers=[{"name": "c", "ports": [port]}], **fields)


@pytest.mark.parametrize(
    ("ip", "other", "free"),
    [
        ("", "", False),
        ("10.0.0.1", "10.0.0.2", True),
        ("10.0.0.1", "0.0.0.0", False),
        ("", "10.0.0.1", False),
        ("10.0.0.1", "10.0.0.1", False),
    ],
)
def test_a_host_port_conflicts_on_the_same_or_a_wildcard_address(ip, other, free):
    there = with_port(80, other, name="old", node="a")
    verdict = judge(with_port(80, ip), node(), pods=[there])
    assert bool(verdict.feasible) is free
    assert free or verdict.failures["a"] == (PortTaken(),)


def test_different_protocols_or_port_numbers_do_not_conflict():
    there = with_port(80, name="old", node="a")
    assert judge(with_port(80, protocol="UDP"), node(), pods=[there]).feasible
    assert judge(with_port(81), node(), pods=[there]).feasible


def test_a_sidecars_port_counts_and_an_init_containers_does_not():
    def old(policy):
        init = {"name": "i", "restartPolicy": policy, "ports": [{"hostPort": 80}]}
        return pod("old", node="a", initContainers=[init])

    assert not judge(with_port(80), node(), pods=[old("Always")]).feasible
    assert judge(with_port(80), node(), pods=[old(None)]).feasible


@pytest.mark.parametrize(
    ("version", "free"),
    [("v1.30.14", True), ("v1.33.5", True), ("v1.33.6-eks-1", False), ("v1.34.0", False)],
)
def test_an_older_scheduler_does_not_see_a_sidecars_port(version, free):
    sidecar = {"name": "s", "restartPolicy": "Always", "ports": [{"hostPort": 80}]}
    there = pod("old", node="a", initContainers=[sidecar])
    rules = Rules.of_version(version)
    assert bool(judge(with_port(80), node(), pods=[there], rules=rules).feasible) is free


def test_with_host_network_every_port_is_a_host_port():
    asks = pod(hostNetwork=True, containers=[{"name": "c", "ports": [{"containerPort": 80}]}])
    assert not judge(asks, node(), pods=[with_port(80, name="old", node="a")]).feasible
