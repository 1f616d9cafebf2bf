"""``python -m localcluster.agent``: act as the kubelets of one cluster until SIGTERM."""

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
from pathlib import Path

from localcluster.agent.api import Api
from localcluster.agent.node_states import NodeStates
from localcluster.agent.nodes import keep_nodes
from localcluster.agent.pods import run_pods
from localcluster.agent.process import ProcessRuntime
from localcluster.agent.runtime import ReportRuntime, Runtime
from localcluster.processes import LIFELINE


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m localcluster.agent", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--dir", type=Path, required=True, help="for pods' files")
    parser.add_argument("--report-only", action="store_true", help="start no processes")
    arguments = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    reports = arguments.report_only
    runtime: Runtime = ReportRuntime() if reports else ProcessRuntime(arguments.dir)
    asyncio.run(_run(arguments.kubeconfig, runtime))


async def _run(kubeconfig: Path, runtime: Runtime) -> None:
    loop = asyncio.get_running_loop()
    async with Api(kubeconfig) as api:
        states = NodeStates()
        work = asyncio.gather(keep_nodes(api, states), run_pods(api, runtime, states))
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, work.cancel)
        if LIFELINE in os.environ:
            await loop.connect_read_pipe(lambda: _Lifeline(work), sys.stdin)
        with contextlib.suppress(asyncio.CancelledError):
            await work


class _Lifeline(asyncio.Protocol):
    """Cancels the work when the parent, at the other end of standard input, has ended."""

    def __init__(self, work: asyncio.Future[tuple[None, None]]) -> None:
        self._work = work

    def connection_lost(self, _error: Exception | None) -> None:
        self._work.cancel()


if __name__ == "__main__":
    main()
