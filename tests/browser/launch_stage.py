"""A hub on which each start goes slowly or wrong in its own way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from localcluster import ApiError, Fleet, LocalCluster, NodeGroup, rbac
from tests.browser.policy_stage import held_back
from tests.hub.pods import Pods
from tests.hub.running import RunningHub, running_hub
from tests.servers import single_user
from tests.waiting import wait_for

NAMESPACE = "launches"
GPU = "nvidia.com/gpu"
LONG = "registry.example.org/the_software_of_a_team_with_quite_a_long_name/lab:2026-11-23"
"""An image's name that doesn't fit a phone."""
NO_PROGRAM = 'exec: "jupyterhub-singleuser": executable file not found in $PATH'
LAST_WORDS = "ImportError: <b>libcudnn.so.9</b>: cannot open shared object file"
_FRAME = '  File "/opt/conda/lib/python3.12/site-packages/torch/__init__.py", line 416, in <module>'
TRACEBACK = "\n".join(["Traceback (most recent call last):", *[_FRAME] * 4, LAST_WORDS])


@dataclass(frozen=True)
class Course:
    """How a start goes.

    Attributes:
        faults: What the local cluster plays, by annotations without their prefix.
        says: What its page says, meanwhile or in the end.
        raw: What Kubernetes says; "" if it says nothing.
        image: Its image; "" for one of its own.
    """

    faults: dict[str, str]
    says: str
    raw: str = ""
    image: str = ""


FAILURES = {
    "missing-image": Course({"pull-error": "not-found"}, "There is no image", "not found", LONG),
    "registry": Course({"pull-error": "unreachable"}, "can't be reached", "dial tcp"),
    "full-disk": Course({"pull-error": "no-space"}, "The machine's disk is full", "no space left"),
    "slow-image": Course({"pull-seconds": "forever"}, "didn't arrive in time"),
    "volume": Course(
        {"mount-error": "mount.nfs: No route to host"},
        "Your files can't be connected",
        "mount.nfs: No route to host",
    ),
    "taken-device": Course({"device-error": "unavailable"}, "The GPU was taken", "Allocate failed"),
    "no-program": Course({"run-error": NO_PROGRAM}, "lacks the program", "executable file not"),
    "crash": Course({"exits-after": "0", "exit-output": TRACEBACK}, LAST_WORDS, "Traceback"),
    "memory": Course(
        {"exits-after": "0", "exit-reason": "OOMKilled", "exit-code": "137"},
        "Please choose more memory",
    ),
    "silent": Course({"hangs": "true"}, "Your server runs, but doesn't answer"),
}
OTHERS = {
    "slow": Course({"pull-seconds": "3"}, "Downloading the software of your server."),
    "hitch": Course(
        {"pull-error": "unreachable", "pull-error-times": "3", "hangs": "true"},
        "Still trying",
        "dial tcp",
    ),
}


def _profile(slug: str, course: Course) -> dict[str, Any]:
    override: dict[str, Any] = {
        "extra_resource_limits": {GPU: "1"},
        # A node pulls one image after the other.
        "node_selector": {"launches": "slowly" if "slow" in slug else "at-once"},
        "extra_annotations": {f"localcluster/{key}": it for key, it in course.faults.items()},
        "image": course.image or f"registry.example.org/{slug}:1",
    }
    if "mount-error" in course.faults:
        override["volumes"] = [{"name": "home", "emptyDir": {}}]
    return {"slug": slug, "display_name": slug, "kubespawner_override": override}


PROFILES = [_profile(slug, it) for slug, it in {**OTHERS, **FAILURES}.items()]
CONFIGURATION = f"""
import asyncio, os
from pathlib import Path
import gpuspawner

async def hold(spawner):
    while Path(os.environ["HOLD"], spawner.user.name).exists():
        await asyncio.sleep(0.05)

c.KubeSpawner.namespace = {NAMESPACE!r}
c.KubeSpawner.cmd = {single_user.COMMAND!r}
c.KubeSpawner.delete_grace_period = 0
c.KubeSpawner.http_timeout = 12
c.KubeSpawner.pre_spawn_hook = hold
c.KubeSpawner.profile_list = {PROFILES!r}
c.GPUSpawner.preparing_timeout = 8
c.JupyterHub.tornado_settings = {{"slow_spawn_timeout": 0}}
gpuspawner.configure(c)
"""
_ROOM = {"cpu": "32", "memory": "64Gi", "pods": "110", GPU: "32"}
NODES = Fleet(
    tuple(
        NodeGroup(f"launches-{pace}", 1, _ROOM, {"launches": pace})
        for pace in ("slowly", "at-once")
    )
)


@contextmanager
def a_hub_of_launches(cluster: LocalCluster, folder: Path) -> Iterator[RunningHub]:
    """Run a hub with these profiles, on a cluster that runs pods."""
    folder.mkdir()
    with suppress(ApiError):  # it may be there already
        cluster.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    nodes, pods = cluster.add_nodes(NODES), Pods(cluster, NAMESPACE)
    kubeconfig = rbac.hub_kubeconfig(cluster, NAMESPACE)
    environment = {"KUBECONFIG": str(kubeconfig), "HOLD": str(folder)}
    with running_hub(folder, CONFIGURATION, environment=environment, pods=pods) as hub:
        hub.until_it_sees_the_cluster()
        yield hub
    cluster.api.delete(pods.path, grace=0)
    wait_for(lambda: not pods.all())
    cluster.remove_nodes(nodes)


def follow(page: Page, folder: Path, profile: str) -> None:
    """Choose a profile, press the button, and let the start go on once its page is open."""
    user = page.evaluate("window.jhdata.user")
    page.locator(f"input[value='{profile}']").check()
    with held_back(folder, user):
        page.locator("#spawn_form button.btn-jupyter").click()
        page.wait_for_url("**/hub/spawn-pending/**")
