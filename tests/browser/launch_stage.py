"""A hub on which each start goes slowly or wrong in its own way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from localcluster import Fleet, LocalCluster, NodeGroup
from tests.browser.held_hubs import a_held_hub, held_back
from tests.hub.running import RunningHub
from tools import pseudo

NAMESPACE = "launches"
GPU = "nvidia.com/gpu"
LONG = "registry.example.org/the_software_of_a_team_with_quite_a_long_name/lab:2026-11-23"
"""An image's name that doesn't fit a phone."""
NO_PROGRAM = 'exec: "jupyterhub-singleuser": executable file not found in $PATH'
LAST_WORDS = "ImportError: <b>libcudnn.so.9</b>: cannot open shared object file"
DOWNLOADING = "Downloading your server's software."
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
    "silent": Course({"hangs": "true"}, "Your server is running but doesn't answer"),
}
OTHERS = {
    "slow": Course({"pull-seconds": "3"}, DOWNLOADING),
    "slow-alone": Course({"pull-seconds": "3"}, DOWNLOADING),  # for a test whose node has no image
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
    if "hangs" in course.faults:
        override["http_timeout"] = 5
    if "mount-error" in course.faults:
        override["volumes"] = [{"name": "home", "emptyDir": {}}]
    return {"slug": slug, "display_name": slug, "kubespawner_override": override}


PROFILES = [_profile(slug, it) for slug, it in {**OTHERS, **FAILURES}.items()]
CONFIGURATION = f"""
c.GPUSpawner.preparing_timeout = 15
c.KubeSpawner.profile_list = {PROFILES!r}
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
    configuration = pseudo.write(folder.parent / "locale") + CONFIGURATION
    with a_held_hub(cluster, folder, NAMESPACE, NODES, configuration) as hub:
        yield hub


def follow(page: Page, folder: Path, profile: str) -> None:
    """Choose a profile, press the button, and let the start go on once its page is open."""
    user = page.evaluate("window.jhdata.user")
    page.locator(f"input[value='{profile}']").check()
    with held_back(folder, user):
        page.locator("#spawn_form button.btn-jupyter").click()
        page.wait_for_url("**/hub/spawn-pending/**")
