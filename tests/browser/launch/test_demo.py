"""The demo as users start it: from its command line to JupyterLab, and its clean end."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visiting import Visit
from tests.hub.people import Person
from tests.processes import processes_of
from tests.waiting import wait_for

ROOT = Path(__file__).parents[3]
GPU = "nvidia.com/gpu"
T4 = "NVIDIA Tesla T4"
_MODEL = re.compile(r'name="accelerator"[^>]*?value="([^"]+)"')


@dataclass
class RunningDemo:
    process: subprocess.Popen[str]
    directory: Path
    url: str

    def pods(self) -> dict[str, dict[str, Any]]:
        kubectl = self.directory / "cluster" / "kubectl"
        command = [kubectl, "get", "pods", "-n", "jhub", "-o", "json"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return {pod["metadata"]["name"]: pod for pod in json.loads(done.stdout)["items"]}

    def person(self, name: str) -> Person:
        return Person(self, name).log_in()

    def end(self) -> int:
        """End it as Ctrl-C does, and return its exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait()


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[RunningDemo]:
    process = subprocess.Popen(
        [sys.executable, "-m", "localcluster", "demo", "--port", "0", "--dir", str(tmp_path)],
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        ready = next(line for line in process.stdout if line.startswith("ready "))
        yield RunningDemo(process, tmp_path, ready.split()[1])
    finally:
        process.terminate()
        process.communicate()


def test_the_demo_gives_the_last_gpu_once_and_leaves_nothing_behind(demo: RunningDemo) -> None:
    alice, bob = demo.person("alice"), demo.person("bob")
    form = alice.open("/hub/spawn")
    [model] = [value for value in _MODEL.findall(form.html) if "t4" in value]

    alice.submit({**form.chosen, "accelerator": model, f"gpus--{model}": "1"})
    wait_for(lambda: "jupyter-config-data" in alice.open("/user/alice/lab").html, timeout=120)
    pod = demo.pods()["jupyter-alice"]
    assert pod["spec"]["nodeName"] == "t4-0"
    assert pod["spec"]["containers"][0]["resources"]["limits"][GPU] == "1"

    refused = bob.submit({**form.chosen, "accelerator": model, f"gpus--{model}": "1"})
    assert refused.status == 409
    assert set(demo.pods()) == {"jupyter-alice"}

    assert demo.end() == 0
    assert processes_of(demo.directory) == []


def choose(page: Page, accelerator: str, **sizes: str) -> None:
    page.get_by_role("radio", name=accelerator, exact=True).check()
    for name, value in sizes.items():
        page.locator(f"select[name={name}]").select_option(value)


def press_start(page: Page) -> None:
    page.get_by_role("button", name="Start").click()


@pytest.mark.nightly("Chromium takes long to draw JupyterLab, and a pool to grow")
def test_users_get_jupyterlab_in_chromium_and_a_pool_grows(demo: RunningDemo, visit: Visit) -> None:
    alice, bob, dave = (visit(demo, name) for name in ("alice", "bob", "dave"))
    choose(alice, T4, memory="4Gi")
    press_start(alice)
    alice.wait_for_url("**/lab*", timeout=120_000)
    expect(alice.locator("#jp-main-dock-panel")).to_be_visible(timeout=120_000)
    resources = demo.pods()["jupyter-alice"]["spec"]["containers"][0]["resources"]
    assert resources["limits"] == {GPU: "1", "memory": "4Gi", "cpu": "1"}
    assert resources["requests"] == resources["limits"]

    choose(bob, T4, memory="8Gi", cpu="2")
    press_start(bob)
    expect(bob.get_by_role("alert")).to_contain_text("in use right now")
    expect(bob.get_by_role("alert")).not_to_contain_text("alice")
    expect(bob.get_by_role("radio", name=T4, exact=True)).to_be_checked()
    expect(bob.locator("select[name=memory]")).to_have_value("8Gi")
    expect(bob.locator("select[name=cpu]")).to_have_value("2")

    choose(dave, "NVIDIA L4")
    press_start(dave)
    expect(dave.locator("body")).to_contain_text("A new machine is starting for you")
    dave.wait_for_url("**/lab*", timeout=120_000)
    assert demo.pods()["jupyter-dave"]["spec"]["nodeName"] == "l4-0"
