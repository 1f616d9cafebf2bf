"""The commands of ``python -m localcluster``: build, up and demo."""

import argparse
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from localcluster import binaries, demo, fleet
from localcluster.cluster import LocalCluster, Pods
from localcluster.errors import LocalClusterError

#: What only clusters with Karpenter or Kueue run; each takes minutes to build.
_OPTIONAL = ("karpenter", "kueue")


class _EndedBySignal(Exception):  # noqa: N818  (not an error: the user asked for it)
    """The process received SIGINT or SIGTERM."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status."""
    options = _parser().parse_args(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)
    try:
        return int(options.run(options))
    except _EndedBySignal:
        return 0
    except LocalClusterError as error:
        print(f"localcluster: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m localcluster", description=__doc__)
    commands = parser.add_subparsers(title="commands", required=True)

    build = commands.add_parser("build", help="build and download the programs of a cluster, once")
    build.add_argument(
        "also",
        nargs="*",
        type=_optional,
        metavar="PROGRAM",
        help=f"optional programs to build as well: {', '.join(_OPTIONAL)}",
    )
    build.set_defaults(run=_build)

    up = commands.add_parser("up", help="run a cluster until Ctrl-C")
    up.add_argument(
        "--fleet",
        default="demo",
        help=f"its nodes: a file, or one of {', '.join(fleet.names())}; default: %(default)s",
    )
    up.add_argument("--dir", type=Path, required=True, help="for kubeconfig, logs and data")
    up.add_argument(
        "--report-only",
        dest="pods",
        action="store_const",
        const=Pods.REPORT,
        default=Pods.RUN,
        help="report bound pods as Running; start no processes",
    )
    up.set_defaults(run=_up)

    show = commands.add_parser("demo", help="run a JupyterHub on a cluster until Ctrl-C")
    show.add_argument("--fleet", default="demo", help="as for up")
    show.add_argument(
        "--port", type=_port, default=8000, help="default: %(default)s; 0: a free one"
    )
    show.add_argument("--dir", type=Path, help="directory for its files; default: a temporary one")
    show.set_defaults(run=_demo)
    return parser


def _optional(name: str) -> str:
    # Not by `choices`: Python 3.11 holds the empty list, if none is named, against them.
    if name not in _OPTIONAL:
        raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(_OPTIONAL)}")
    return name


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 0 to 65535")
    return int(text)


def _build(options: argparse.Namespace) -> int:
    for program in ("controlplane", "proxy", *options.also):
        print(getattr(binaries, program)())
    return 0


def _up(options: argparse.Namespace) -> int:
    with LocalCluster(options.dir, fleet=options.fleet, pods=options.pods) as cluster:
        print("ready", flush=True)
        while True:
            threading.Event().wait(1)
            cluster.check()


def _demo(options: argparse.Namespace) -> int:
    demo.run(options.dir, fleet=options.fleet, port=options.port)
    return 0


def _end(_number: int, _frame: object) -> None:
    # A second Ctrl-C must not interrupt the orderly stop, which takes bounded time.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise _EndedBySignal


if __name__ == "__main__":
    sys.exit(main())
