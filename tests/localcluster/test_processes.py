"""Child processes, and signals that arrive while they start."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcluster import LocalClusterError
from localcluster.processes import Process, undisturbed, wait_until
from tests.processes import is_running


class SignalError(Exception):
    pass


def _raise(_number: int, _frame: object) -> None:
    raise SignalError


@pytest.fixture
def handler() -> Iterator[object]:
    """Handle SIGTERM with a function that raises."""
    before = signal.signal(signal.SIGTERM, _raise)
    yield _raise
    signal.signal(signal.SIGTERM, before)


def test_a_signal_waits_until_the_block_has_ended(handler: object) -> None:
    seen = []

    def start_something() -> None:
        with undisturbed():
            signal.raise_signal(signal.SIGTERM)
            seen.append("the end of the block")

    with pytest.raises(SignalError):
        start_something()

    assert seen == ["the end of the block"]
    assert signal.getsignal(signal.SIGTERM) is handler


def test_an_error_in_the_block_is_raised(handler: object) -> None:
    with pytest.raises(OSError, match="no such program"), undisturbed():
        raise OSError("no such program")

    assert signal.getsignal(signal.SIGTERM) is handler


def test_a_process_that_does_not_end_when_asked_is_killed(tmp_path: Path) -> None:
    program = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "print('deaf', flush=True); time.sleep(60)"
    )
    process = Process("deaf", [sys.executable, "-c", program], tmp_path / "log")
    wait_until(lambda: process.last_words() == "deaf", [process], 30, "it is deaf")

    process.stop(grace=0.1)

    assert not process.is_alive()


def test_what_a_process_has_started_in_its_own_session_is_killed_with_it(tmp_path: Path) -> None:
    """JupyterHub starts its services in this way, and ends them only if it ends in order."""
    service = "import time; time.sleep(60)"
    program = (
        "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        f"command = [sys.executable, '-c', {service!r}]; "
        "print(subprocess.Popen(command, start_new_session=True).pid, flush=True); time.sleep(60)"
    )
    _kill_with_what_it_names(program, tmp_path / "log")


def test_what_a_killed_process_s_child_has_left_behind_is_killed_with_it(tmp_path: Path) -> None:
    program = (
        "import signal, subprocess, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "subprocess.run('sleep 60 & echo $!', shell=True); time.sleep(60)"
    )
    _kill_with_what_it_names(program, tmp_path / "log")


def _kill_with_what_it_names(program: str, log: Path) -> None:
    """Run a deaf program that prints the id of another process, and see both killed."""
    process = Process("deaf", [sys.executable, "-c", program], log)
    wait_until(lambda: process.last_words().isdigit(), [process], 30, "it has named another")
    other = int(process.last_words())
    assert is_running(other)

    process.stop(grace=0.1)

    wait_until(lambda: not is_running(other), [], 30, "the other has ended")


def test_the_error_about_a_process_that_ends_early_quotes_its_log(
    tmp_path: Path,
) -> None:
    process = Process("brief", [sys.executable, "-c", "exit('my last words')"], tmp_path / "log")

    with pytest.raises(LocalClusterError, match=r"brief ended with 1; .*\nmy last words"):
        wait_until(lambda: False, [process], 30, "never")


def test_waiting_times_out() -> None:
    with pytest.raises(LocalClusterError, match="the moon is blue: not within 0 s"):
        wait_until(lambda: False, [], 0.1, "the moon is blue")
