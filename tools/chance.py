"""Runs tests again and again on a troubled machine: `make chance RUNS=10 TROUBLE=stalls`.

Tests have to be red only when the code is wrong. The troubles:

  none      the tests alone
  busy      beside as many busy loops as there are processors
  stalls    every 10 to 20 s, all processes of the tests stop for 2 to 5 s, as on a machine that
            is out of memory or is moved to another host
  one-core  all processes of the tests share one processor

There are no second tries. The exit status is 0 if every run was green.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from secrets import token_hex

MARK = "GPUSPAWNER_CHANCE"
TROUBLES = ("none", "busy", "stalls", "one-core")


def main(words: Sequence[str] | None = None) -> int:
    """Run the tests, print a line for each run and its red tests, and return 1 if any was red."""
    parser = argparse.ArgumentParser(
        prog="make chance", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("trouble", choices=TROUBLES)
    parser.add_argument("runs", type=int)
    parser.add_argument("command", nargs="+", help="what to run, for example python -m pytest")
    chosen = parser.parse_args(words)
    logs = Path(os.environ.get("CHANCE_LOGS", ".nox/chance"))
    logs.mkdir(parents=True, exist_ok=True)
    reds = 0
    for number in range(1, chosen.runs + 1):
        log = logs / f"{chosen.trouble}-{number}.log"
        started = time.monotonic()
        green = _run(chosen.command, chosen.trouble, log)
        reds += not green
        outcome = "green" if green else "RED"
        seconds = time.monotonic() - started
        print(f"{chosen.trouble} {number}: {outcome} in {seconds:.0f} s, {log}", flush=True)
        if not green:
            print(*_failures(log), sep="\n", flush=True)
    print(f"{chosen.trouble}: {chosen.runs - reds} of {chosen.runs} runs green")
    return 1 if reds else 0


def _run(command: Sequence[str], trouble: str, log: Path) -> bool:
    mark = token_hex(8)
    environment = {**os.environ, MARK: mark, "CI": ""}
    if trouble == "one-core":
        command = ["taskset", "--cpu-list", str(min(os.sched_getaffinity(0))), *command]
    with ExitStack() as stack:
        file = stack.enter_context(log.open("w"))
        if trouble == "busy":
            stack.enter_context(_busy_loops())
        tests = subprocess.Popen(
            command,
            stdout=file,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=environment,
        )
        if trouble == "stalls":
            stack.enter_context(_stalls(mark, tests.pid))
        return tests.wait() == 0


@contextmanager
def _busy_loops() -> Iterator[None]:
    endless = [sys.executable, "-c", "while True: pass"]
    loops = [subprocess.Popen(endless) for _ in os.sched_getaffinity(0)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@contextmanager
def _stalls(mark: str, first: int) -> Iterator[None]:
    """Stop and continue all processes of the tests, in turns, until the block ends."""
    over = threading.Event()
    with ThreadPoolExecutor(1) as thread:
        stalls = thread.submit(_stall_again_and_again, mark, first, over)
        try:
            yield
        finally:
            over.set()
        print(f"{stalls.result()} stalls", flush=True)  # or the error that ended them


def _stall_again_and_again(mark: str, first: int, over: threading.Event) -> int:
    for stalls in count():
        if over.wait(random.uniform(10, 20)):  # noqa: S311
            return stalls
        stopped = _processes(mark, first)
        try:
            for process in stopped:
                _signal(process, signal.SIGSTOP)
            over.wait(random.uniform(2, 5))  # noqa: S311
        finally:
            for process in stopped:
                _signal(process, signal.SIGCONT)
    raise AssertionError


def _processes(mark: str, first: int) -> list[int]:
    """Return the processes that have the mark in their environment, or descend from the first.

    Servers in pods have an environment of their own; processes that outlive their parents don't
    descend from the tests any more.
    """
    parents: dict[int, int] = {}
    marked = set()
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            process = int(entry.name)
            # The fields after the command, which is in parentheses and may have spaces.
            parents[process] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if f"{MARK}={mark}".encode() in (entry / "environ").read_bytes():
                marked.add(process)
    found = marked | {first}
    while more := {it for it, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found)


def _signal(process: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, number)


def _failures(log: Path) -> list[str]:
    lines = log.read_text(errors="replace").splitlines()
    return [f"  {it}" for it in lines if it.startswith(("FAILED ", "ERROR "))] or lines[-20:]


if __name__ == "__main__":
    sys.exit(main())
