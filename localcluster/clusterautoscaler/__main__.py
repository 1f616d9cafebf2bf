"""``python -m localcluster.clusterautoscaler``: scale one cluster's groups until SIGTERM."""

import argparse
import http.client
import logging
import os
import sys
import threading
import time
from pathlib import Path

from localcluster import fleet, kubeconfig
from localcluster.client import ApiError, Client
from localcluster.clusterautoscaler.autoscaler import Autoscaler
from localcluster.clusterautoscaler.settings import ClusterAutoscaler
from localcluster.processes import LIFELINE

log = logging.getLogger("localcluster.clusterautoscaler")

#: How often machines are looked at: between two scans they become nodes.
_TICK = 0.2


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m localcluster.clusterautoscaler")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--fleet", type=Path, required=True, help="a fleet file")
    arguments = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    if LIFELINE in os.environ:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    described = fleet.load(arguments.fleet)
    settings = described.autoscaler
    if not isinstance(settings, ClusterAutoscaler):
        parser.error(f"{arguments.fleet} has no Cluster Autoscaler")
    access = kubeconfig.read(arguments.kubeconfig)
    client = Client(access.url, access.ca, access.token)
    autoscaler = Autoscaler(client, described.groups, settings)
    _run(autoscaler, settings.scan_seconds)


def _run(autoscaler: Autoscaler, scan_seconds: float) -> None:
    is_started, next_scan = False, 0.0
    while True:
        now = time.time()
        try:
            if not is_started:
                autoscaler.start(now)
                is_started = True
            autoscaler.run_cloud(now)
            if now >= next_scan:
                next_scan = now + scan_seconds
                autoscaler.scan(now)
        except (OSError, http.client.HTTPException, ApiError) as error:
            # The API server may be restarting.
            log.warning("%s; trying again", error)
        time.sleep(_TICK)


def _end_with_parent() -> None:
    """End this process when the parent, at the other end of standard input, has ended."""
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    main()
