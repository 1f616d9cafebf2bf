"""What a hub process has once."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from traitlets.config import Config

from gpuspawner import runtime
from gpuspawner.cluster.health import Live
from gpuspawner.configuration import check
from gpuspawner.kube.nodes import Node
from gpuspawner.kube.objects import convert
from gpuspawner.offers import OfferError

T4 = {"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}


def settings(**traits: Any) -> Any:
    return check(Config(GPUSpawner=Config(traits)))


def node(name: str, labels: dict[str, str]) -> Node:
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "1"}
    plain = {
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts},
    }
    converted = convert("Node", plain)
    assert isinstance(converted, Node)
    return converted


@pytest.fixture
def none_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "_runtime", None)


def test_configured_accelerators_are_offered_whatever_the_nodes_say() -> None:
    made = runtime.Runtime(settings(accelerators={"a100": {"node_selector": {"gpu": "a100"}}}))
    made.view.state.put(node("t4-0", T4))

    assert not made.discovers
    assert list(made.offers.accelerators) == ["a100"]


def test_discovered_accelerators_come_with_their_nodes() -> None:
    made = runtime.Runtime(settings(memory_choices=["1Gi"]))
    assert made.discovers
    assert not made.offers.accelerators

    made.view.state.put(node("t4-0", T4))

    assert list(made.offers.accelerators) == ["tesla-t4"]
    assert [memory.text for memory in made.offers.memory_choices] == ["1Gi"]
    assert made.offers is made.offers


def test_servers_without_a_gpu_avoid_accelerators_where_the_administrator_says_so() -> None:
    a100 = {"a100": {"node_selector": {"gpu": "a100"}}}
    plain = runtime.Runtime(settings(accelerators=a100))
    apart = runtime.Runtime(settings(accelerators=a100, keep_cpu_servers_off_accelerators=True))

    assert not plain.pod_rules(plain.offers).cpu_avoids
    assert [it.key for it in apart.pod_rules(apart.offers).cpu_avoids] == ["a100"]


@pytest.mark.usefixtures("none_yet")
async def test_a_process_has_one_runtime_and_speaks_with_the_hub_s_logger(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    first = runtime.current(settings(memory_choices=["1Gi"]))

    second = runtime.current(settings(memory_choices=["2Gi"]))

    assert second is first
    assert not isinstance(first.view.health(), Live)
    assert logging.getLogger("gpuspawner").parent is settings().log
    await first.view.stop()


def test_what_cannot_be_offered_is_no_runtime() -> None:
    broken = settings()
    broken.memory_choices = ["8Gib"]

    with pytest.raises(OfferError, match="memory_choices"):
        runtime.Runtime(broken)
