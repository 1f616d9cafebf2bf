"""Builds a program from a Go module of this repository, and shows progress."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from localcluster.errors import LocalClusterError
from localcluster.toolchains import Go


def sources(module: Path) -> list[bytes]:
    """Return all that decides what is built, besides the toolchain.

    A module that only builds another module's program has no ``main.go``.
    """
    files = (module / name for name in ("go.mod", "go.sum", "main.go"))
    return [file.read_bytes() for file in files if file.exists()]


def build(
    toolchain: Go,
    module: Path,
    target: Path,
    title: str,
    linker_flags: Sequence[str] = (),
    package: str = ".",
) -> None:
    """Build the module's program, or the *package* of another module that it requires.

    Raises:
        LocalClusterError: the build failed.
    """
    environment = _environment()
    flags = ["build", "-v", "-trimpath", "-ldflags", " ".join(["-s", "-w", *linker_flags])]
    print(
        f"building {title} with {toolchain.version}, once: about 4 minutes on 2 cores",
        file=sys.stderr,
        flush=True,
    )
    total = _count_packages(toolchain.command, module, title, package)
    with subprocess.Popen(
        [toolchain.command, *flags, "-o", target, package],
        cwd=module,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None  # noqa: S101  (asked for just above)
        with _ended_if_we_are(process):
            said = _show_progress(process.stderr, total)
    if process.returncode:
        raise LocalClusterError(f"go could not build {title}:\n" + "\n".join(said[-20:]))


def module_directory(toolchain: Go, module: Path, name: str) -> Path:
    """Return where the sources of a required module are, after a build."""
    done = subprocess.run(
        [toolchain.command, "list", "-m", "-f", "{{.Dir}}", name],
        cwd=module,
        env=_environment(),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return Path(done.stdout.strip())


def _environment() -> dict[str, str]:
    return {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}


def _count_packages(command: Path, module: Path, title: str, package: str) -> int:
    """Download the modules of the build and return how many packages it has."""
    done = subprocess.run(
        [command, "list", "-deps", package],
        cwd=module,
        env=_environment(),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise LocalClusterError(f"go could not fetch the modules of {title}; see above")
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
