"""A stand-in for libnvidia-ml.so.1, so that processes see simulated GPUs.

The library is compiled once from ``nvml_stub.c``. A process uses it if it starts with the
variables of `environment`: the loader reads LD_LIBRARY_PATH only at the start.
``LOCALCLUSTER_GPUS`` has a line for each GPU, followed by a line for each of its MIG slices::

    gpu|NVIDIA A100-SXM4-40GB|GPU-0f5c...|42949672960|0|0
    mig|NVIDIA A100-SXM4-40GB MIG 1g.5gb|MIG-77d1...|5100273664|0|0

with name, UUID, memory and used memory in bytes, and utilization in percent.
If it is unset, there is no driver. ``LOCALCLUSTER_NVML_ERROR`` makes nvmlInit fail with
that number.
"""

import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from localcluster.cache import key, made_once
from localcluster.errors import LocalClusterError
from localcluster.toolchains import c_compiler

SOURCE = Path(__file__).with_name("nvml_stub.c")
LIBRARY = "libnvidia-ml.so.1"
GPUS = "LOCALCLUSTER_GPUS"
ERROR = "LOCALCLUSTER_NVML_ERROR"


@dataclass(frozen=True)
class Gpu:
    """A GPU, or with ``slices`` its MIG slices; memory and used in bytes."""

    name: str
    uuid: str
    memory: int
    used: int = 0
    utilization: int = 0
    slices: tuple["Gpu", ...] = ()


def build() -> Path:
    """Return the directory of the library; compile it first if it isn't in the cache.

    Raises:
        LocalClusterError: there is no C compiler and none could be installed, or it failed.
    """
    return made_once(f"nvml/{key(SOURCE.read_bytes())}", _compile)


def environment(
    directory: Path, gpus: Iterable[Gpu], inherited: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the variables with which a process sees exactly these GPUs.

    Args:
        directory: the one that `build` returned.
        gpus: in the order of their index.
        inherited: the process's other variables; their LD_LIBRARY_PATH stays, after ours.
    """
    before = (inherited or {}).get("LD_LIBRARY_PATH")
    paths = [str(directory), *([before] if before else [])]
    return {"LD_LIBRARY_PATH": os.pathsep.join(paths), GPUS: "\n".join(_lines(gpus))}


def _lines(gpus: Iterable[Gpu]) -> Iterable[str]:
    for gpu in gpus:
        yield _line("gpu", gpu)
        for mig_slice in gpu.slices:
            yield _line("mig", mig_slice)


def _line(kind: str, gpu: Gpu) -> str:
    return f"{kind}|{gpu.name}|{gpu.uuid}|{gpu.memory}|{gpu.used}|{gpu.utilization}"


def _compile(directory: Path) -> None:
    compiler = c_compiler()
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", f"-Wl,-soname,{LIBRARY}"]
    command = [*compiler, *flags, "-o", str(directory / LIBRARY), str(SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LocalClusterError(f"{compiler[0]} could not compile {SOURCE}:\n{done.stderr}")
