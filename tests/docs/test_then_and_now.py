"""The pages that do anew what texts of earlier years did: their files and commands, one by one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcluster import LocalCluster
from tests.fixtures.cluster import AddNodes
from tests.waiting import wait_for

FOLDER = Path(__file__).parents[2] / "docs" / "then-and-now"
PAGES = [it for it in sorted(FOLDER.glob("*.md")) if it.stem != "index"]
BLOCK = re.compile(r"([^\n]*)\n\n```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DEFAULT = "/api/v1/namespaces/default"


@pytest.fixture
def nothing_left(cluster: LocalCluster) -> Iterator[None]:
    """Delete what a page has made in the namespace `default`."""
    yield
    for kind in ("pods", "resourcequotas", "persistentvolumeclaims"):
        cluster.api.delete(f"{DEFAULT}/{kind}", grace=0)
    wait_for(lambda: not cluster.api.items(f"{DEFAULT}/pods"))


def run(command: str, folder: Path, cluster: LocalCluster) -> str:
    """Return what a command prints, whatever its exit status."""
    path = f"{cluster.directory}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    kubeconfig = str(cluster.kubeconfig)
    environment = {**os.environ, "PATH": path, "KUBECONFIG": kubeconfig, "COLUMNS": "120"}
    # A busy machine may need longer than the 30 s that kubectl waits by itself.
    patient = command.replace("kubectl wait ", "kubectl wait --timeout=300s ")
    done = subprocess.run(
        ["bash", "-c", patient],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=400,
        check=False,
    )
    return done.stdout


def in_words(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_s_commands_print_what_it_says(
    page: Path, cluster: LocalCluster, add_nodes: AddNodes, tmp_path: Path
) -> None:
    printed = ""
    for before, language, text in BLOCK.findall(page.read_text()):
        commands = re.findall(r"^\$ (.*(?:\\\n.*)*)", text, re.MULTILINE)
        if language in ("yaml", "python") and (named := re.search(r"`([\w.-]+)`:$", before)):
            (tmp_path / named[1]).write_text(text)
        elif fleet := re.search(r"localcluster up --fleet (\S+)", text):
            add_nodes(fleet[1])
        elif language == "console":
            printed = "".join(run(command, tmp_path, cluster) for command in commands)
        elif language == "text":
            assert set(in_words(text)) <= set(in_words(printed)), printed


def test_there_is_a_page_for_each_of_the_five_texts() -> None:
    assert len(PAGES) == 5
    assert min(len(BLOCK.findall(page.read_text())) for page in PAGES) > 5
