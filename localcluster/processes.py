"""Child processes that are started, watched and ended by their own ids."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from localcluster.errors import LocalClusterError

#: Set in a child that is to end when its standard input is closed.
LIFELINE = "LOCALCLUSTER_LIFELINE"


class Process:
    """One child in a session of its own, its output in a log file.

    The session keeps a terminal's Ctrl-C from reaching the child, which is ended
    in order instead. Its standard input is a pipe from this process: a child that
    heeds `LIFELINE` ends when this process is gone, even by SIGKILL.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.log = log
        with log.open("ab") as output:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**os.environ, **(environment or {}), LIFELINE: "1"},
            )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._child.pid

    def is_alive(self) -> bool:
        """Say whether the process runs."""
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
        """End the process: SIGTERM, and SIGKILL after ``grace`` seconds."""
        if self.is_alive():
            self._child.send_signal(signal.SIGTERM)
            try:
                self._child.wait(grace)
            except subprocess.TimeoutExpired:
                self._child.kill()
        self._child.wait()
        if self._child.stdin:
            self._child.stdin.close()


def wait_until(
    ready: Callable[[], bool], processes: Sequence[Process], timeout: float, what: str
) -> None:
    """Wait until ``ready()`` is true, as long as every process lives.

    Raises:
        LocalClusterError: a process ended, or ``timeout`` seconds went by.
    """
    deadline = time.monotonic() + timeout
    while not ready():
        for process in processes:
            process.check()
        if time.monotonic() > deadline:
            raise LocalClusterError(f"{what}: not within {timeout:.0f} s")
        time.sleep(0.05)
