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

from tests.hub.people import Person
from tests.processes import processes_of
from tests.waiting import wait_for

ROOT = Path(__file__).parents[2]
_MODEL = re.compile(r'name="accelerator"[^>]*?value="([^"]+)"')


@dataclass
class RunningDemo:
    process: subprocess.Popen[str]
    directory: Path
    url: str

    def person(self, name: str) -> Person:
        return Person(self, name).log_in()

    def pods(self) -> dict[str, dict[str, Any]]:
        command = [
            self.directory / "cluster" / "kubectl",
            "get",
            "pods",
            "-n",
            "jhub",
            "-o",
            "json",
        ]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return {pod["metadata"]["name"]: pod for pod in json.loads(done.stdout)["items"]}


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
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def test_the_demo_gives_the_last_gpu_once_and_leaves_nothing_behind(demo: RunningDemo) -> None:
    alice, bob = demo.person("alice"), demo.person("bob")
    form = alice.open("/hub/spawn")
    [model] = [value for value in _MODEL.findall(form.html) if "t4" in value]

    alice.submit({**form.chosen, "accelerator": model, f"gpus--{model}": "1"})
    wait_for(lambda: "jupyter-config-data" in alice.open("/user/alice/lab").html, timeout=90)
    pod = demo.pods()["jupyter-alice"]
    assert pod["spec"]["nodeName"] == "t4-0"
    assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"

    refused = bob.submit({**form.chosen, "accelerator": model, f"gpus--{model}": "1"})
    assert refused.status == 409
    assert set(demo.pods()) == {"jupyter-alice"}

    demo.process.send_signal(signal.SIGINT)
    demo.process.communicate(timeout=60)
    assert demo.process.returncode == 0
    assert processes_of(demo.directory) == []
