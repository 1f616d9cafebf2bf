"""The documentation's examples, run unchanged."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hub.configurations import ANSWER_AT_ONCE, T4, t4_nodes
from tests.hub.running import API_TOKEN
from tests.waiting import wait_for

DOCS = Path(__file__).parents[3] / "docs"


def examples(page, language):
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


def run(language, example, hub, name):
    """Run an example as the user *name*."""
    hub.api("POST", f"/users/{name}")
    command = {"python": [sys.executable, "-c"], "bash": ["bash", "-c"]}[language]
    names = {"HUB": hub.url, "NAME": name, "TOKEN": API_TOKEN, "NO_PROXY": "*"}
    return subprocess.run(
        [*command, example],
        env={**os.environ, **names},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("answers", ["", ANSWER_AT_ONCE], ids=["when it knows", "at once"])
def test_the_examples_start_a_server_and_explain_the_next_refusal(kept_hub, add_nodes, answers):
    add_nodes(t4_nodes(1, 1))
    [by_python] = examples("how-to/start-by-rest.md", "python")
    [by_curl] = examples("how-to/start-by-rest.md", "bash")
    hub = kept_hub(T4 + answers)
    first = run("python", by_python, hub, "alice")
    second = run("python", by_python, hub, "bob")
    third = run("bash", by_curl, hub, "carol")

    assert (first.returncode, first.stderr) == (0, "")
    assert hub.server("alice")["ready"]
    assert second.returncode == 1
    assert "The one Tesla T4 is in use right now." in second.stdout
    assert '"status": 409' in third.stdout
    hub.stop("alice")
    assert '"ready": true' in run("bash", by_curl, hub, "carol").stdout


def cut(stream: str) -> str:
    """Follow for a moment; a slow machine may hear nothing in it."""
    return stream.replace("curl", "curl --max-time 3")


def events(followed: str) -> list[str]:
    lines = followed.splitlines()
    return [it.removeprefix("data: ") for it in lines if it.startswith("data: ")]


def test_the_examples_ask_for_the_availability_a_decision_and_the_line(kept_hub, add_nodes):
    add_nodes(t4_nodes(1, 1))
    states, stream, decision, line = examples("reference/http.md", "bash")
    hub = kept_hub(T4)
    [t4, none] = json.loads(run("bash", states, hub, "alice").stdout)["accelerators"]
    [data] = wait_for(lambda: events(run("bash", cut(stream), hub, "alice").stdout))
    asked = json.loads(run("bash", decision, hub, "alice").stdout)
    waiting = json.loads(run("bash", line, hub, "alice").stdout)

    assert set(t4) == set(none)
    assert json.loads(data)["accelerators"] == [t4, none]
    assert (t4["accelerator"], t4["gpus"]["total"]) == ("t4", 1)
    assert (asked["decision"], asked["reason"]) == ("refuse", "impossible")
    assert asked["alternatives"][0]["label"] == "Start with 1 × Tesla T4"
    assert waiting == {"servers": 0, "accelerators": {}}
