"""Samples of servers' pods have what is configured for all servers, and need no user."""

from __future__ import annotations

from typing import Any

import kubespawner
import pytest
from traitlets.config import Config

from gpuspawner.configuration import check
from gpuspawner.doctor.sample_pods import samples, try_all
from gpuspawner.runtime import Runtime

A100 = {"node_selector": {"gpu": "a100"}, "counts": [2, 4]}
FPGA = {"resource": "example.com/fpga", "node_selector": {"fpga": "f1"}}
PROFILES = [
    {"display_name": "CPU"},
    {
        "display_name": "GPU",
        "kubespawner_override": {
            "extra_resource_limits": {"nvidia.com/gpu": "1"},
            "node_selector": {"gpu": "t4"},
            "image": "torch:1",
        },
    },
]
FOR_ALL = {
    "namespace": "hub",
    "image": "lab:1",
    "extra_labels": {"team": "ml"},
    "scheduler_name": "user-scheduler",
    "uid": lambda _: 1 / 0,
    "environment": {"HOME": lambda _: 1 / 0},
    "modify_pod_hook": lambda *_: 1 / 0,
}


def made(**traits: Any) -> list[Any]:
    settings = check(Config(GPUSpawner={**FOR_ALL, **traits}))
    return list(samples(Runtime(settings), settings))


def of(sample: Any) -> tuple[Any, Any, Any]:
    [container] = sample.pod["spec"]["containers"]
    return (
        container["resources"].get("limits"),
        sample.pod["spec"].get("nodeSelector"),
        container["image"],
    )


def test_each_accelerator_is_tried_with_the_fewest_gpus() -> None:
    a100, fpga = made(accelerators={"a100": A100, "fpga": FPGA})

    assert of(a100) == ({"nvidia.com/gpu": "2"}, {"gpu": "a100"}, "lab:1")
    assert of(fpga) == ({"example.com/fpga": "1"}, {"fpga": "f1"}, "lab:1")
    assert a100.namespace == "hub"
    assert a100.pod["metadata"]["labels"]["team"] == "ml"
    assert a100.pod["spec"]["schedulerName"] == "user-scheduler"


@pytest.mark.each_hub
@pytest.mark.parametrize(
    "profiles",
    [
        PROFILES,
        pytest.param(
            dict(zip("ab", PROFILES, strict=True)),
            marks=pytest.mark.skipif(
                kubespawner.version_info < (7, 1),
                reason="version: KubeSpawner 7.1 brought dictionaries",
            ),
        ),
    ],
    ids=["a list", "a dictionary"],
)
def test_each_profile_is_tried_with_what_it_changes(profiles: Any) -> None:
    cpu, gpu = made(profile_list=profiles)

    assert of(gpu) == ({"nvidia.com/gpu": "1"}, {"gpu": "t4"}, "torch:1")
    assert gpu.grant.accelerator.key == "gpu"
    assert of(cpu) == ({}, None, "lab:1")
    assert cpu.grant.accelerator is None


def test_a_list_that_needs_a_user_is_not_tried() -> None:
    assert made(profile_list=lambda _: 1 / 0) == []


def test_an_accelerator_that_contradicts_the_configuration_is_left_out() -> None:
    contradicting = {"node_selector": {"gpu": "t4"}}

    assert made(accelerators={"a100": A100}, **contradicting) == []


async def test_a_configuration_of_which_no_sample_can_be_made_is_no_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gpuspawner.compat.sample_pod.make", lambda *_: 1 / 0)
    settings = check(Config(GPUSpawner={**FOR_ALL, "accelerators": {"a100": A100}}))
    caplog.set_level("INFO")

    await try_all(Runtime(settings), settings)

    assert "No sample" in caplog.text
