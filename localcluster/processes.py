"""Child processes: starting them, watching them and ending them."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from localcluster.errors import LocalClusterError

# Loaded before any fork: few calls are safe between fork and exec.
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1

#: Set in children: end when standard input is closed.
LIFELINE = "LOCALCLUSTER_LIFELINE"


class Process:
    """A child process in its own session, with its output in a log file.

    The session keeps a terminal's Ctrl-C from reaching the child; `stop` ends it instead. Its
    standard input is a pipe from this process: a child that supports `LIFELINE` ends when this
    process ends, even by SIGKILL. For other children, on Linux, the kernel can send a signal.

    Args:
        name: its name in messages.
        command: the program and its arguments.
        log: the file to which its output is appended.
        environment: its variables; this process's own if left out.
        directory: its working directory; the current one if left out.
        signal_at_our_end: for a child that does not support `LIFELINE`. The kernel sends it when
            the thread that started the child ends.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        log: Path,
        environment: Mapping[str, str] | None = None,
        *,
        directory: Path | None = None,
        signal_at_our_end: signal.Signals | None = None,
    ) -> None:
        self.name = name
        self.log = log
        at_end = signal_at_parents_end(signal_at_our_end) if signal_at_our_end else None
        with log.open("ab") as output:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,
                cwd=directory,
                env={**(os.environ if environment is None else environment), LIFELINE: "1"},
                # It takes no lock, so no other thread can hold one that it needs.
                preexec_fn=at_end,  # noqa: PLW1509
            )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._child.pid

    def is_alive(self) -> bool:
        """Return whether the process runs."""
        return self._child.poll() is None

    def check(self) -> None:
        """Raise a `LocalClusterError` with the end of the log if the process has ended."""
        if not self.is_alive():
            raise LocalClusterError(
                f"{self.name} ended with {self._child.returncode}; the end of {self.log}:\n"
                + self.last_words()
            )

    def last_words(self, lines: int = 12) -> str:
        """Return the end of the log."""
        text = self.log.read_text(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def stop(self, grace: float = 10.0) -> None:
        """End the process: SIGTERM, and `kill_with_children` after ``grace`` seconds."""
        if self.is_alive():
            self._child.send_signal(signal.SIGTERM)
            try:
                self._child.wait(grace)
            except subprocess.TimeoutExpired:
                kill_with_children(self.pid)
        self._child.wait()
        if self._child.stdin:
            self._child.stdin.close()


def module_process(module: str, arguments: Sequence[str | Path], log: Path) -> Process:
    """Start ``python -m module`` of this repository; it works from any directory."""
    paths = [str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    name = module.rpartition(".")[2]
    return Process(name, [sys.executable, "-m", module, *arguments], log, environment)


def kill_with_children(pid: int) -> None:
    """Kill a process and what it has started, also in sessions of their own.

    What its own children have left behind is killed if it is in a group that the process leads.
    The process must be a child that nobody has waited for, or below one: then no other has its id.
    A process that is stopped starts no others, nor gives their ids back.
    """
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
        for child in _children(pid):
            kill_with_children(child)
        with contextlib.suppress(ProcessLookupError):  # it leads no group
            os.killpg(pid, signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)


def _children(pid: int) -> list[int]:
    """Return the children of a process; none on a system without /proc."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has just ended
            _state, parent = stat.read_bytes().rpartition(b")")[2].split()[:2]
            if int(parent) == pid:
                found.append(int(stat.parent.name))
    return found


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Delay SIGINT and SIGTERM until the end of the block.

    Otherwise nobody would stop a child that was just started and isn't registered yet.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    handlers = [
        signal.signal(number, lambda which, _frame: came.append(which)) for number in numbers
    ]
    try:
        yield
    finally:
        for number, handler in zip(numbers, handlers, strict=True):
            signal.signal(number, handler)
    if came:
        signal.raise_signal(came[0])


def signal_at_parents_end(number: signal.Signals) -> Callable[[], None]:
    """Return a function for the child to call before exec: a signal when its parent ends."""

    def ask_the_kernel() -> None:
        if _libc:
            _libc.prctl(_PR_SET_PDEATHSIG, number)

    return ask_the_kernel


def wait_until(
    ready: Callable[[], bool], processes: Sequence[Process], timeout: float, what: str
) -> None:
    """Wait until ``ready()`` is true; fail if a process ends first.

    Raises:
        LocalClusterError: a process ended, or ``timeout`` seconds passed.
    """
    deadline = time.monotonic() + timeout
    while not ready():
        for process in processes:
            process.check()
        if time.monotonic() > deadline:
            raise LocalClusterError(f"{what}: not within {timeout:.0f} s")
        time.sleep(0.05)
