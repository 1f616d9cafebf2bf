"""The interface of runtimes, and the one that only reports containers as running."""

import asyncio
from typing import Protocol

from localcluster.agent.api import Object


class StartError(Exception):
    """A container could not be started; the text is the reason."""


class Running(Protocol):
    """A container that was started."""

    async def wait(self) -> int:
        """Wait until it ends, and return its exit code."""
        ...

    async def stop(self, grace: float) -> int:
        """Send SIGTERM, kill it after ``grace`` seconds, and return its exit code."""
        ...


class Sandbox(Protocol):
    """The environment of one pod's containers."""

    async def start(self, container: Object) -> Running:
        """Start a container.

        Raises:
            StartError: it cannot be started.
        """
        ...

    async def run_to_end(self, container: Object) -> int:
        """Run an init container and return its exit code.

        Raises:
            StartError: it cannot be started.
        """
        ...

    async def close(self) -> None:
        """Kill all containers that still run, and give back what the pod held."""
        ...


class Runtime(Protocol):
    """Makes a sandbox for each pod."""

    def sandbox(self, pod: Object, node: Object, ip: str) -> Sandbox:
        """Return the sandbox of a pod on this node with this address."""
        ...


class Reported:
    """A container that is reported as running until it is stopped."""

    async def wait(self) -> int:
        """Never return."""
        await asyncio.Event().wait()
        raise AssertionError

    async def stop(self, grace: float) -> int:  # noqa: ARG002
        """Return success immediately."""
        return 0


class ReportSandbox:
    """Reports each container started, and each init container successful."""

    async def start(self, container: Object) -> Running:  # noqa: ARG002
        """Report the container started."""
        return Reported()

    async def run_to_end(self, container: Object) -> int:  # noqa: ARG002
        """Report success."""
        return 0

    async def close(self) -> None:
        """Do nothing, since nothing ran."""


class ReportRuntime:
    """Starts no process."""

    def sandbox(self, pod: Object, node: Object, ip: str) -> Sandbox:  # noqa: ARG002
        """Return a sandbox that only reports."""
        return ReportSandbox()
