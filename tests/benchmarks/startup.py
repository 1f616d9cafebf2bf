"""Measures what gpuspawner adds to a hub's start: `python -m tests.benchmarks.startup`.

Each run is a new process that imports JupyterHub and KubeSpawner, as each hub does, then imports
gpuspawner and calls `configure`, and lets the hub's event loop do what that leaves for it. It
prints medians of processor time; it asserts nothing. An installed package has bytecode, so the
first run, which writes it, doesn't count.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise

RUNS = 15


def main() -> None:
    """Run the processes in turns and print the table."""
    # Not at the top: it brings in a part of gpuspawner, which the processes shall import.
    from tests.benchmarks.form import COMMON, OUR_PROFILES, OURS

    configurations = {"accelerators": COMMON + OURS, "21 profiles": COMMON + OUR_PROFILES}
    with tempfile.TemporaryDirectory() as folder:
        # The package's own folder may not be writable, or be read by other processes.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}
        taken: dict[str, list[list[float]]] = {name: [] for name in configurations}
        for _ in range(RUNS + 1):
            for name, runs in taken.items():
                runs.append(_start(configurations[name], environment))
    print("| processor time, in ms | JupyterHub and KubeSpawner | import | configure | ratio |")
    print("| --- |" + " ---: |" * 4)
    for name, runs in taken.items():
        hub, imported, configured = map(statistics.median, zip(*runs[1:], strict=True))
        ratio = (hub + imported + configured) / hub
        print(f"| {name} | {hub:.0f} | {imported:.0f} | {configured:.0f} | {ratio:.2f} |")


def _start(lines: str, environment: dict[str, str]) -> list[float]:
    command = [sys.executable, "-m", __spec__.name if __spec__ else __name__, lines]
    done = subprocess.run(command, env=environment, capture_output=True, check=True)
    times: list[float] = json.loads(done.stdout)
    return times


def _measure(lines: str) -> None:
    """Print the processor time of each step of this process, in ms."""
    began = time.process_time()
    import jupyterhub.app  # noqa: F401
    import kubespawner  # noqa: F401

    with_hub = time.process_time()
    import gpuspawner

    _ = gpuspawner.configure
    imported = time.process_time()
    asyncio.run(_configure(lines))
    steps = began, with_hub, imported, time.process_time()
    print(json.dumps([(after - before) * 1000 for before, after in pairwise(steps)]))


async def _configure(lines: str) -> None:
    from traitlets.config import Config

    exec(lines, {"c": Config()})
    await asyncio.sleep(0)  # what `configure` leaves for the event loop


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _measure(sys.argv[1])
    else:
        main()
