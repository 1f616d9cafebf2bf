"""The examples of the documentation, run as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.cluster import AddNodes
from tests.hub.conftest import StartGPUHub
from tests.hub.running import API_TOKEN, RunningHub
from tests.hub.test_gates import ANSWER_AT_ONCE, T4, t4_nodes

PAGE = Path(__file__).parents[2] / "docs/how-to/start-by-rest.md"


def run(language: str, hub: RunningHub, name: str) -> subprocess.CompletedProcess[str]:
    """Run the page's example as *name*, whom the hub knows."""
    example = re.search(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert example
    hub.api("POST", f"/users/{name}")
    command = {"python": [sys.executable, "-c"], "bash": ["bash", "-c"]}[language]
    names = {"HUB": hub.url, "NAME": name, "TOKEN": API_TOKEN, "NO_PROXY": "*"}
    return subprocess.run(
        [*command, example[1]],
        env={**os.environ, **names},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("answers", ["", ANSWER_AT_ONCE], ids=["when it knows", "at once"])
def test_the_examples_start_a_server_and_tell_why_the_next_one_does_not(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes, answers: str
) -> None:
    add_nodes(t4_nodes(1, 1))
    with start_gpu_hub(T4 + answers) as hub:
        first = run("python", hub, "alice")
        second = run("python", hub, "bob")
        third = run("bash", hub, "carol")

        assert (first.returncode, first.stderr) == (0, "")
        assert hub.server("alice")["ready"]
        assert second.returncode == 1
        assert "The one Tesla T4 is in use right now." in second.stdout
        assert '"status": 409' in third.stdout
        hub.stop("alice")
        assert '"ready": true' in run("bash", hub, "carol").stdout
