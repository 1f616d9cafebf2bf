"""The runtime that starts a pod's containers as processes of this machine."""

import asyncio
import contextlib
import errno
import logging
import os
import signal
import sys
from pathlib import Path

from localcluster import nvml_stub
from localcluster.agent.api import Object
from localcluster.agent.devices import Allocations, Device, visible
from localcluster.agent.environment import command_line, container_variables
from localcluster.agent.runtime import Done, Exit, Reported, Running, Sandbox, StartError
from localcluster.agent.termination import last_words
from localcluster.errors import LocalClusterError
from localcluster.processes import signal_at_parents_end

log = logging.getLogger(__name__)

#: All processes of a container inherit this variable, which finds them at its end.
MARK = "LOCALCLUSTER_CONTAINER"

_VISIBLE_DEVICES = "NVIDIA_VISIBLE_DEVICES"
_killed_with_the_agent = signal_at_parents_end(signal.SIGKILL)


class ProcessRuntime:
    """Runs pods as processes, with homes and logs below one directory."""

    def __init__(self, directory: Path) -> None:
        if sys.platform != "linux":
            raise LocalClusterError("pods run as processes on Linux only; elsewhere: --report-only")
        self._directory = directory
        self._allocations = Allocations()
        try:
            self._nvml: Path | None = nvml_stub.build()
        except LocalClusterError as error:
            log.warning("%s", error)
            self._nvml = None

    def sandbox(self, pod: Object, node: Object, ip: str) -> Sandbox:
        """Return the sandbox of a pod on this node with this address."""
        return ProcessSandbox(self._directory, self._allocations, self._nvml, pod, node, ip)


class ProcessSandbox:
    """One pod's home directory, address and GPUs."""

    def __init__(
        self,
        directory: Path,
        allocations: Allocations,
        nvml: Path | None,
        pod: Object,
        node: Object,
        ip: str,
    ) -> None:
        name = "{namespace}_{name}".format(**pod["metadata"])
        # A pod of the same name finds its files again, as with a volume.
        self._home = directory / "homes" / name
        self._logs = directory / "pods" / name
        self._allocations = allocations
        self._nvml = nvml
        self._pod = pod
        self._node = node
        self._ip = ip
        self._uid = pod["metadata"]["uid"]
        self._taken: dict[str, tuple[Device, ...]] = {}
        self._started: list[ProcessContainer] = []

    async def start(self, container: Object) -> Running:
        """Start a container's process; only report it running if its image holds the command."""
        for directory in (self._home, self._logs):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        mark = f"{self._uid}/{container['name']}"
        variables = self._variables(container) | {MARK: mark}
        line = command_line(container, variables, is_root=os.geteuid() == 0)
        if not line:
            return Reported()
        log = self._logs / f"{container['name']}.log"
        try:
            with log.open("ab") as output:
                before = output.tell()
                process = await asyncio.create_subprocess_exec(
                    *line,
                    cwd=self._home,
                    env=variables,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                    preexec_fn=_killed_with_the_agent,
                )
        except OSError as error:
            raise StartError(_not_started(line[0], error)) from error
        started = ProcessContainer(process, mark, log, before)
        self._started.append(started)
        return started

    async def start_init(self, container: Object) -> Running:
        """Start an init container; report success if its image holds the command."""
        running = await self.start(container)
        return Done() if isinstance(running, Reported) else running

    async def close(self) -> None:
        """Kill all processes that still run, and give back the GPUs."""
        for container in self._started:
            await container.stop(0)
        self._allocations.give_back(self._uid)

    def _variables(self, container: Object) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        base = {"PATH": path, "HOME": str(self._home), "LANG": "C.UTF-8"}
        own = base | container_variables(self._pod, container, self._ip)
        taken = self._devices(container)
        if taken:
            own[_VISIBLE_DEVICES] = ",".join(device.visible_as for device in taken)
        seen = visible(taken, own.get(_VISIBLE_DEVICES), self._node)
        if (seen or taken) and self._nvml:
            own |= nvml_stub.environment(self._nvml, [device.gpu for device in seen], own)
        return own

    def _devices(self, container: Object) -> tuple[Device, ...]:
        """Return the container's devices; they stay the same when it restarts."""
        name = container["name"]
        if name not in self._taken:
            self._taken[name] = self._allocations.take(
                self._uid, container, self._node, self._reusable()
            )
        return self._taken[name]

    def _reusable(self) -> set[Device]:
        """Return the devices of init containers that no other container has been given since."""
        spec = self._pod["spec"]
        inits = {
            it["name"]
            for it in spec.get("initContainers", [])
            if it.get("restartPolicy") != "Always"
        }
        kept = {it for name, taken in self._taken.items() if name not in inits for it in taken}
        return {it for name in inits for it in self._taken.get(name, ())} - kept


class ProcessContainer:
    """A container's first process, the leader of a session.

    Args:
        process: that process.
        mark: what marks all processes of the container.
        log: the file that they write to.
        before: the bytes that containers before this one wrote to it.
    """

    def __init__(
        self, process: asyncio.subprocess.Process, mark: str, log: Path, before: int
    ) -> None:
        self._process = process
        self._mark = mark
        self._log = log
        self._before = before

    async def wait(self) -> Exit:
        """Wait for the first process to end; its exit code is as a shell would say it."""
        code = await self._process.wait()
        _kill_all(self._mark)
        return Exit(128 - code if code < 0 else code, output=last_words(self._log, self._before))

    async def stop(self, grace: float) -> Exit:
        """Send SIGTERM; after ``grace`` seconds kill it and all processes that it started."""
        if grace > 0:
            self._signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), grace)
        self._signal(signal.SIGKILL)
        return await self.wait()

    def _signal(self, number: signal.Signals) -> None:
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)


def _not_started(program: str, error: OSError) -> str:
    """Return what containerd and runc say of a program that can't be run."""
    why = f'exec: "{program}": {(error.strerror or "").lower()}'
    if error.errno == errno.ENOENT:
        why = (
            f'exec: "{program}": stat {program}: no such file or directory'
            if "/" in program
            else f'exec: "{program}": executable file not found in $PATH'
        )
    return (
        "failed to create containerd task: failed to create shim task: OCI runtime create failed: "
        f"runc create failed: unable to start container process: error during container init: {why}"
    )


def _kill_all(mark: str) -> None:
    """Kill every process with a container's mark: kernels have their own sessions."""
    for pid in _marked(mark):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _marked(mark: str) -> list[int]:
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            # Processes that end meanwhile, or are another user's, can't be read.
            with contextlib.suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found
