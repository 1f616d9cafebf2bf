"""The first start of a model that a fresh hub refuses by REST is refused in the answer itself.

Zero to JupyterHub sets `slow_spawn_timeout` to 0, so whatever waits for the API server is a 202.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fixtures.cluster import AddNodes
from tests.hub.configurations import ANSWER_AT_ONCE, t4_nodes
from tests.hub.conftest import StartGPUHub
from tests.waiting import wait_for

MODELS: dict[str, Any] = {
    name: {"display_name": name, "resource": resource, "node_selector": {"gpu": "t4"}}
    for name, resource in (("t4", "nvidia.com/gpu"), ("fpga", "example.com/fpga"))
}
ACCELERATORS = f"c.GPUSpawner.accelerators = {MODELS!r}\n"
PROFILE_LIST = [
    {
        "display_name": name,
        "slug": name,
        "kubespawner_override": {
            "extra_resource_limits": {model["resource"]: "2"},
            "node_selector": {"gpu": "t4"},
        },
    }
    for name, model in MODELS.items()
]
PROFILES = f"c.KubeSpawner.profile_list = {PROFILE_LIST!r}\n"


@pytest.mark.parametrize(
    ("configuration", "options"),
    [
        (ACCELERATORS, [{"accelerator": "fpga"}]),
        (PROFILES, [{"profile": "fpga"}, {"profile": "t4"}]),
    ],
    ids=["accelerators", "profiles"],
)
def test_a_fresh_hub_refuses_in_the_answer_to_rest(
    start_gpu_hub: StartGPUHub,
    add_nodes: AddNodes,
    configuration: str,
    options: list[dict[str, str]],
) -> None:
    add_nodes(t4_nodes(1, 1))
    with start_gpu_hub(configuration + ANSWER_AT_ONCE) as hub:
        wait_for(lambda: "gpuspawner found:" in hub.log)

        for number, chosen in enumerate(options):
            answer = hub.start(f"user-{number}", chosen)
            assert (answer.status_code, json.loads(answer.text)["status"]) == (409, 409)
