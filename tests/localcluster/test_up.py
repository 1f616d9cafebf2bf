"""``python -m localcluster up`` from start to end; it leaves nothing behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from localcluster.binaries import controlplane
from tests.processes import processes_of
from tests.waiting import wait_for

pytestmark = pytest.mark.nightly("it is about the local cluster, not about the package")

ROOT = Path(__file__).parents[2]
Up = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def up() -> Iterator[Up]:
    """Return a function that starts a cluster by its command line."""
    started: list[subprocess.Popen[str]] = []

    def start(directory: Path, fleet: str = "single") -> subprocess.Popen[str]:
        options = ["--fleet", fleet, "--dir", str(directory), "--report-only"]
        process = subprocess.Popen(
            [sys.executable, "-m", "localcluster", "up", *options],
            cwd=ROOT,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def wait_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", process.communicate()


def kubectl(directory: Path, *arguments: str) -> str:
    command = [controlplane(), "kubectl", "--kubeconfig", directory / "kubeconfig", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_is_ready_when_all_nodes_are_and_leaves_no_process(
    up: Up, tmp_path: Path, number: signal.Signals
) -> None:
    process = up(tmp_path, fleet="gke")
    wait_ready(process)

    nodes = kubectl(tmp_path, "get", "nodes", "--no-headers").splitlines()
    assert {line.split()[1] for line in nodes} == {"Ready"}
    assert "t4-1" in {line.split()[0] for line in nodes}

    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (0, "")
    assert processes_of(tmp_path) == []


def test_after_sigkill_it_leaves_no_process_and_its_directory_can_be_reused(
    up: Up, tmp_path: Path
) -> None:
    first = up(tmp_path)
    wait_ready(first)

    first.kill()
    first.communicate()
    wait_for(lambda: not processes_of(tmp_path))

    wait_ready(up(tmp_path))


@pytest.mark.parametrize("seen", ["kube-apiserver.log", "agent.log"])
def test_an_interrupt_during_the_start_leaves_no_process(up: Up, tmp_path: Path, seen: str) -> None:
    process = up(tmp_path)
    wait_for((tmp_path / seen).exists)

    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)

    assert process.returncode == 0
    assert processes_of(tmp_path) == []


def test_two_clusters_run_at_the_same_time_independently(up: Up, tmp_path: Path) -> None:
    directories = [tmp_path / "one", tmp_path / "two"]
    processes = [
        up(directory, fleet)
        for directory, fleet in zip(directories, ("single", "eks"), strict=True)
    ]
    for process in processes:
        wait_ready(process)

    names = [kubectl(directory, "get", "nodes", "-o", "name") for directory in directories]

    assert names == ["node/gpu-0\n", "node/cpu-0\nnode/p3-8xlarge-0\n"]


def test_a_directory_in_use_is_refused(up: Up, tmp_path: Path) -> None:
    wait_ready(up(tmp_path))

    second = up(tmp_path)
    _, said = second.communicate(timeout=30)

    assert second.returncode == 1
    assert said == f"localcluster: another local cluster runs in {tmp_path}\n"
    assert kubectl(tmp_path, "get", "nodes", "-o", "name") == "node/gpu-0\n"


def test_a_directory_with_other_files_is_left_alone(up: Up, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("kept")

    process = up(tmp_path)
    _, said = process.communicate(timeout=30)

    assert process.returncode == 1
    assert "holds files that no local cluster made" in said
    assert (tmp_path / "thesis.tex").read_text() == "kept"


def test_a_bad_fleet_is_refused_before_anything_starts(up: Up, tmp_path: Path) -> None:
    process = up(tmp_path / "dir", fleet="none-such")
    _, said = process.communicate(timeout=30)

    assert process.returncode == 1
    assert said.startswith("localcluster: fleet none-such: neither a readable file")
    assert not (tmp_path / "dir").exists()


def test_the_error_about_a_program_that_dies_quotes_its_log(up: Up, tmp_path: Path) -> None:
    process = up(tmp_path)
    wait_ready(process)
    [etcd] = [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and _is_etcd_of(entry, tmp_path)
    ]

    subprocess.run(["kill", "-KILL", str(etcd)], check=True)
    _, said = process.communicate(timeout=60)

    assert process.returncode == 1
    assert said.startswith("localcluster: etcd ended with -9; the end of")
    assert processes_of(tmp_path) == []


def _is_etcd_of(entry: Path, directory: Path) -> bool:
    with suppress(OSError):
        line = (entry / "cmdline").read_bytes()
        return b"\0etcd\0" in line and str(directory).encode() in line
    return False
