"""The init container that checks a server's GPUs, and which pods get it.

test_visible_gpus.py runs it.
"""

import pytest

from gpuspawner.compat.pods import plain
from gpuspawner.offers.gpu_check import gpus, with_gpu_check
from gpuspawner.offers.visible_gpus import CONTAINER
from tests.unit.makers.hubs import A100
from tests.unit.makers.profile_lists import GPU
from tests.unit.makers.worlds import node

SERVER = {
    "name": "notebook",
    "image": "lab:1",
    "imagePullPolicy": "IfNotPresent",
    "args": ["jupyterhub-singleuser"],
    "ports": [{"containerPort": 8888}],
    "lifecycle": {"postStart": {"exec": {"command": ["true"]}}},
    "env": [{"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "all"}],
    "resources": {
        "limits": {"nvidia.com/gpu": "2", "memory": "1Gi"},
        "requests": {"nvidia.com/gpu": "2", "cpu": "500m"},
    },
    "securityContext": {"runAsUser": 1000},
    "volumeMounts": [{"name": "driver", "mountPath": "/usr/local/nvidia"}],
}
FIRST = {"name": "block-cloud-metadata"}


def pod(server=SERVER, *first):
    return {"spec": {"initContainers": list(first), "containers": [server]}}


def limits(**amounts):
    return {"name": "notebook", "resources": {"limits": amounts}}


def test_the_check_is_the_last_init_container_and_like_the_server_but_for_its_program():
    first, check = with_gpu_check(pod(SERVER, FIRST))["spec"]["initContainers"]

    assert first == FIRST
    assert check.pop("command")[:2] == ["sh", "-c"]
    assert check.pop("terminationMessagePolicy") == "FallbackToLogsOnError"
    alike = "env", "image", "imagePullPolicy", "resources", "securityContext", "volumeMounts"
    assert check == {"name": CONTAINER, **{key: SERVER[key] for key in alike}}


def test_the_server_keeps_its_program_and_the_given_pod_stays_as_it_is():
    given = pod()
    made = with_gpu_check(given)

    assert made["spec"]["containers"] == [SERVER]
    assert given == pod()


def test_a_pod_that_has_a_check_gets_no_second_one():
    once = with_gpu_check(pod())

    assert with_gpu_check(once) == once


@pytest.mark.parametrize(
    ("server", "found"),
    [
        (SERVER, {"nvidia.com/gpu": 2}),
        (limits(**{"nvidia.com/mig-1g.5gb": "1"}), {"nvidia.com/mig-1g.5gb": 1}),
        (limits(**{"nvidia.com/gpu.shared": "3"}), {"nvidia.com/gpu.shared": 3}),
        (limits(**{"nvidia.com/gpu": "1k"}), {"nvidia.com/gpu": 1000}),
        ({"resources": {"limits": {"nvidia.com/gpu": 4}}}, {"nvidia.com/gpu": 4}),
        (limits(**{"nvidia.com/gpu": "0"}), {}),
        (limits(**{"nvidia.com/gpu": "many"}), {}),
        (limits(**{"nvidia.com/hostdev": "1", "nvidia.com/mig-": "1"}), {}),
        (limits(**{"amd.com/gpu": "1", "memory": "1Gi"}), {}),
        ({"name": "notebook"}, {}),
        ({"name": "notebook", "resources": {"limits": None}}, {}),
    ],
)
def test_only_gpus_and_slices_of_nvidia_are_checked(server, found):
    assert gpus(pod(server)) == found
    assert bool(with_gpu_check(pod(server))["spec"]["initContainers"]) == bool(found)


async def checks(hub, options, **traits):
    """Return the arguments of each check in the pod that KubeSpawner sends."""
    spawner = hub.spawner(**traits)
    spawner.user_options = options
    spawner.run_pre_spawn_hook()
    await spawner.load_user_options()
    made = plain(await spawner.get_pod_manifest())["spec"].get("initContainers") or ()
    return [it["command"][-3:] for it in made if it["name"] == CONTAINER]


TWO = {"accelerator": "a100", "gpus": 2}
OFFERED = {"accelerators": {"a100": A100}}
CHECKED = {**OFFERED, "check_gpus": True}


@pytest.mark.parametrize(
    ("options", "traits", "found"),
    [
        (TWO, OFFERED, []),
        (TWO, CHECKED, [["2", "2", ""]]),
        ({"accelerator": None}, CHECKED, []),
        ({"profile": GPU["slug"]}, {"profile_list": [GPU], "check_gpus": True}, [["1", "1", ""]]),
    ],
    ids=["no trait", "an accelerator", "no GPU", "a profile"],
)
async def test_with_the_trait_servers_with_gpus_are_checked(options, traits, found, hub_with):
    assert await checks(hub_with(("Node", node("a", 2))), options, **traits) == found


def labelled(name, labels):
    made = node(name, 2)
    return "Node", {**made, "metadata": {"name": name, "labels": labels}}


@pytest.mark.parametrize(
    ("labels", "least"),
    [({}, "2"), ({"nvidia.com/gpu.replicas": "1"}, "2"), ({"nvidia.com/gpu.replicas": "4"}, "1")],
)
async def test_shares_of_one_gpu_are_one_gpu(labels, least, hub_with):
    others = {"gpu": "t4", "nvidia.com/gpu.replicas": "4"}
    hub = hub_with(labelled("a", {"gpu": "a100", **labels}), labelled("b", others))

    assert await checks(hub, TWO, **CHECKED) == [["2", least, ""]]


async def test_if_the_hub_sees_no_node_one_gpu_is_enough(hub_with):
    assert await checks(hub_with(), TWO, **CHECKED, preflight="off") == [["2", "1", ""]]
