"""The programs that a local cluster runs, built or downloaded once into the cache.

The control plane is one program, built from the Go module in ``go/``; see its ``main.go``.
configurable-http-proxy, the proxy of the demo's JupyterHub, comes from npm.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from localcluster.cache import key, made_once
from localcluster.errors import LocalClusterError
from localcluster.toolchains import go, node

KUBERNETES_VERSION = "1.36.2"
PROXY = "configurable-http-proxy@5.3.0"

_MODULE = Path(__file__).parent / "go"
_VERSION_PACKAGE = "k8s.io/component-base/version"


def controlplane() -> Path:
    """Return the program that runs etcd, kube-apiserver, ... as its first argument names it.

    Raises:
        LocalClusterError: there is no Go toolchain, or the build failed.
    """
    toolchain = go()
    sources = [(_MODULE / name).read_bytes() for name in ("go.mod", "go.sum", "main.go")]
    made = made_once(f"controlplane/{key(toolchain.version, *sources)}", _build_controlplane)
    return made / "controlplane"


def proxy() -> Path:
    """Return the directory that holds ``configurable-http-proxy`` and its ``node``.

    Raises:
        LocalClusterError: npm could not install it.
    """
    runtime = node()

    def make(directory: Path) -> None:
        print(f"installing {PROXY} from npm", file=sys.stderr, flush=True)
        options = ["--silent", "--no-fund", "--no-audit", "--prefix", str(directory)]
        command: list[str | Path] = [*runtime.npm, "install", *options, PROXY]
        try:
            subprocess.run(command, check=True, env=runtime.environment())
        except (OSError, subprocess.CalledProcessError) as error:
            raise LocalClusterError(f"npm could not install {PROXY}: {error}") from error
        # So that PATH needs only this directory, with whichever Node the machine has.
        (directory / "node_modules" / ".bin" / "node").symlink_to(runtime.command)

    made = made_once(f"proxy/{key(PROXY, str(runtime.command))}", make)
    return made / "node_modules" / ".bin"


def _build_controlplane(directory: Path) -> None:
    toolchain = go()
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    major, minor, _ = KUBERNETES_VERSION.split(".")
    stamps = {"gitVersion": f"v{KUBERNETES_VERSION}", "gitMajor": major, "gitMinor": minor}
    flags = " ".join(f"-X {_VERSION_PACKAGE}.{name}={value}" for name, value in stamps.items())
    build = ["build", "-v", "-trimpath", "-ldflags", f"-s -w {flags}"]
    print(
        f"building Kubernetes {KUBERNETES_VERSION} with {toolchain.version}, "
        "once: about 4 minutes on 2 cores",
        file=sys.stderr,
        flush=True,
    )
    total = _count_packages(toolchain.command, environment)
    with subprocess.Popen(
        [toolchain.command, *build, "-o", directory / "controlplane", "."],
        cwd=_MODULE,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None  # noqa: S101  (asked for just above)
        with _ended_if_we_are(process):
            said = _show_progress(process.stderr, total)
    if process.returncode:
        raise LocalClusterError("go could not build the control plane:\n" + "\n".join(said[-20:]))


def _count_packages(command: Path, environment: dict[str, str]) -> int:
    """Download the modules of the build and return how many packages it has."""
    done = subprocess.run(
        [command, "list", "-deps", "."],
        cwd=_MODULE,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise LocalClusterError("go could not fetch the modules of the control plane; see above")
    return len(done.stdout.splitlines())


def _show_progress(lines: Iterator[str], total: int) -> list[str]:
    """Show progress as ``go build -v`` names packages; return its output."""
    said: list[str] = []
    started = shown = time.monotonic()
    on_terminal = sys.stderr.isatty()
    for line in lines:
        said.append(line.rstrip())
        now = time.monotonic()
        if now - shown > (0.5 if on_terminal else 10):
            shown = now
            text = f"  {min(len(said), total)} of {total} packages, {now - started:.0f} s"
            print(text, end="\r" if on_terminal else "\n", file=sys.stderr, flush=True)
    if on_terminal:
        print(file=sys.stderr)
    return said


@contextlib.contextmanager
def _ended_if_we_are(process: subprocess.Popen[str]) -> Iterator[None]:
    try:
        yield
    except BaseException:
        process.terminate()
        raise
