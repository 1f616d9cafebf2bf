"""One line in an existing hub: its own spawner class and its own form keep working."""

from __future__ import annotations

import pytest

from localcluster import Fleet, NodeGroup
from tests.fixtures.cluster import AddNodes
from tests.hub.conftest import StartGPUHub
from tests.hub.kept import LendHub
from tests.hub.running import RunningHub
from tests.unit.makers.profile_lists import CPU, GPU

pytestmark = pytest.mark.each_hub

OWN_CLASS = """
from kubespawner import KubeSpawner
class CustomSpawner(KubeSpawner):
    def get_env(self):
        return {**super().get_env(), "OWN": "get_env"}
    async def start(self):
        self.environment = {**self.environment, "STARTED_BY": type(self).__name__}
        return await super().start()
    async def get_pod_manifest(self):
        pod = await super().get_pod_manifest()
        pod.metadata.labels["own"] = "manifest"
        return pod
"""
SET = "c.JupyterHub.spawner_class = CustomSpawner\n"
T4 = """
c.CustomSpawner.extra_labels = {"section": "custom"}
c.GPUSpawner.accelerators = {"t4": {"counts": [1, 2], "node_selector": {"gpu": "a100"}}}
"""
# Instead of in the last line, which `start_gpu_hub` adds.
CONFIGURE_HERE = """
from types import SimpleNamespace
gpuspawner.configure(c)
gpuspawner = SimpleNamespace(configure=lambda c: None)
"""


def nodes(gpus: int) -> Fleet:
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    return Fleet((NodeGroup("a100", 1, amounts, labels={"gpu": "a100"}),))


@pytest.mark.parametrize("set_after", [False, True])
def test_the_hub_s_own_spawner_class_gets_gates_and_keeps_its_methods(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes, set_after: bool
) -> None:
    add_nodes(nodes(gpus=2))
    earlier = CONFIGURE_HERE if set_after else ""
    with start_gpu_hub(OWN_CLASS + T4 + earlier + SET) as hub:
        hub.start_until_ready("alice", {"accelerator": "t4", "gpus": 2})
        refused = hub.start("bob", {"accelerator": "t4", "gpus": 1})

        pod = hub.pods.bound("alice")
        assert refused.status_code == 409
        environment = {it["name"]: it.get("value") for it in pod["spec"]["containers"][0]["env"]}
        assert environment["OWN"] == "get_env"
        assert environment["STARTED_BY"] == "CustomSpawner"
        assert pod["metadata"]["labels"]["own"] == "manifest"
        assert pod["metadata"]["labels"]["section"] == "custom"
        assert hub.log.count("GPUSpawner checks each start before CustomSpawner") == 1


FORM_FUNCTION = f"""
async def form(spawner):
    if spawner.user.name == "guest":
        spawner.profile_list = [{CPU!r}]
    else:
        spawner.profile_list = [{CPU!r}, {GPU!r}]
    return "<h4>Choose well</h4>" + spawner._options_form_default()
c.KubeSpawner.options_form = form
"""


@pytest.fixture
def hub(kept_hub: LendHub, add_nodes: AddNodes) -> RunningHub:
    """A hub with two GPUs."""
    add_nodes(nodes(gpus=2))
    return kept_hub(FORM_FUNCTION)


def test_a_form_function_that_sets_profiles_works_by_form(hub: RunningHub) -> None:
    alice, guest = hub.person("alice"), hub.person("guest")

    page = alice.open("/hub/spawn")
    assert "Choose well" in page.text
    assert "GPU server Free 2 of 2 free" in page.text
    assert "GPU server" not in guest.open("/hub/spawn").text

    assert alice.submit({"profile": "gpu", "profile-option-gpu--gpus": "two"}).is_of_a_start
    hub.until_ready("alice")
    refused = hub.person("bob").submit({"profile": "gpu"})
    assert refused.status == 409
    assert "“GPU server” with “One” can't start right now." in refused.text
    assert "GPU server In use" in refused.text
    assert guest.submit({"profile": "gpu"}).status == 400


def test_a_form_function_that_sets_profiles_works_by_rest_and_query(hub: RunningHub) -> None:
    hub.start_until_ready("carol", {"profile": "gpu", "gpus": "two"})  # who never opened the form

    assert hub.pods.bound("carol")["spec"]["nodeSelector"] == {"gpu": "a100"}
    assert hub.start("dave", {"profile": "gpu"}).status_code == 409
    assert hub.start("guest", {"profile": "gpu"}).status_code == 400
    assert hub.person("erin").open("/hub/spawn/erin?opt-profile=gpu").status == 409
    assert hub.person("frank").open("/hub/spawn/frank?opt-profile=cpu-only").is_of_a_start

    grace = hub.person("grace")
    grace.open("/hub/home")
    sent = {"Sec-Fetch-Mode": "cors", "X-XSRFToken": grace.xsrf}
    states = grace.session.get(f"{hub.url}/hub/gpuspawner/states/grace/", headers=sent).json()
    assert [it["profile"] for it in states["profiles"]] == ["cpu-only", "gpu"]


APPLY = """
def apply(spawner, options):
    if options:
        spawner.image = options["image"]
        spawner.mem_limit = options["memory"]
        spawner.extra_resource_limits = {"nvidia.com/gpu": options["gpus"]}
        spawner.node_selector = {"gpu": options["accelerator"]}
c.Spawner.apply_user_options = apply
"""
OPTIONS = {"image": "lab:2", "memory": "1G", "gpus": 1, "accelerator": "a100", "course": "ml"}


def test_options_named_like_ours_are_those_of_who_applies_them(
    kept_hub: LendHub, add_nodes: AddNodes
) -> None:
    labels = {"gpu": "a100", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "2"}
    add_nodes(Fleet((NodeGroup("a100", 1, amounts, labels=labels),)))
    hub = kept_hub(APPLY)

    server = hub.start_until_ready("ann", OPTIONS)

    assert server["user_options"] == OPTIONS
    container = hub.pods.bound("ann")["spec"]["containers"][0]
    assert container["image"] == "lab:2"
    assert container["resources"]["limits"]["memory"] == str(1024**3)
    # As with KubeSpawner, there is no form: the page starts the server.
    assert hub.person("bob").open("/hub/spawn").is_of_a_start
