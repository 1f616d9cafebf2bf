"""`python -m gpuspawner.scheduling NODES.json PODS.json POD.json`: print a verdict.

Each file holds the output of `kubectl get -o json`: a List or one object. Options name more kinds.
"""

import argparse
import sys
from inspect import signature
from pathlib import Path
from typing import NoReturn

from gpuspawner.kube.files import FileError, read_objects
from gpuspawner.kube.objects import KINDS

from .evaluate import explain
from .rules import Rules
from .state import ClusterState
from .verdict import Verdict

ARGUMENTS = tuple(signature(ClusterState.from_objects).parameters)[2:-1]
"""The further kinds: all but nodes, pods and rules, in the order of `KINDS`."""


def describe(verdict: Verdict) -> str:
    """Format a verdict for a terminal."""
    lines = [f"outcome: {verdict.outcome}"]
    if verdict.feasible:
        lines.append(f"feasible: {' '.join(verdict.feasible)}")
    for title, nodes in (("busy", verdict.busy), ("away", verdict.away)):
        if nodes:
            lines.append(f"{title}: {' '.join(nodes)}")
    lines += [f"unknown: {unknown}" for unknown in verdict.unknown]
    lines += [f"{node}: {', '.join(texts)}" for node, texts in sorted(verdict.reasons.items())]
    if verdict.message:
        lines.append(verdict.condition_message)
    return "\n".join(lines)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Exit with 3: argparse's own 2 would be an unknown verdict."""
        self.print_usage(sys.stderr)
        self.exit(3, f"{self.prog}: error: {message}\n")


def main(arguments: list[str] | None = None) -> int:
    """Print the verdict; return 0 if the pod fits, 1 if not, 2 if unknown, 3 on errors."""
    parser = _Parser(
        prog="python -m gpuspawner.scheduling",
        description="Tell what kube-scheduler would do with a pod. All files are what"
        " `kubectl get -o json` prints.",
    )
    parser.add_argument("nodes", type=Path, metavar="NODES.json")
    parser.add_argument("pods", type=Path, metavar="PODS.json", help="of all namespaces")
    parser.add_argument("pod", type=Path, metavar="POD.json", help="the pod to place")
    parser.add_argument("--scheduler-version", default="v1.36", help="whose rules decide")
    for name, kind in zip(ARGUMENTS, [*KINDS][2:], strict=True):
        parser.add_argument(f"--{name}", type=Path, metavar="FILE", help=f"every {kind}")
    options = parser.parse_args(arguments)
    try:
        given = {
            name: read_objects(getattr(options, name))
            for name in ARGUMENTS
            if getattr(options, name)
        }
        pod = read_objects(options.pod)
        state = ClusterState.from_objects(
            nodes=read_objects(options.nodes),
            pods=read_objects(options.pods),
            rules=Rules.of_version(options.scheduler_version),
            **given,
        )
    except FileError as error:
        print(error, file=sys.stderr)
        return 3
    if len(pod) != 1:
        print(f"{options.pod}: expected one pod, found {len(pod)}", file=sys.stderr)
        return 3
    verdict = explain(state, pod[0])
    print(describe(verdict))
    if verdict.outcome == "unknown":
        return 2
    return 0 if verdict.feasible else 1


if __name__ == "__main__":
    sys.exit(main())
