"""What runs a pod's containers, and the runtime that only says it does."""

import asyncio
from typing import Protocol

from localcluster.agent.api import Object


class StartError(Exception):
    """A container could not be started; the text is the reason."""


class Running(Protocol):
    """A container that was started."""

    async def wait(self) -> int:
        """Return its exit code, once it has ended."""
        ...

    async def stop(self, grace: float) -> int:
        """Ask it to end, force it after ``grace`` seconds, and return its exit code."""
        ...


class Sandbox(Protocol):
    """The surroundings of one pod's containers."""

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
        """End at once whatever still runs, and give back what the pod held."""
        ...


class Runtime(Protocol):
    """Makes a sandbox for each pod."""

    def sandbox(self, pod: Object, node: Object, ip: str) -> Sandbox:
        """Return the surroundings for a pod on this node with this address."""
        ...


class Reported:
    """A container of which it is only said that it runs, until it is stopped."""

    async def wait(self) -> int:
        """Never return."""
        await asyncio.Event().wait()
        raise AssertionError

    async def stop(self, grace: float) -> int:  # noqa: ARG002
        """Return success at once."""
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
        """Do nothing; nothing ran."""


class ReportRuntime:
    """Starts no process."""

    def sandbox(self, pod: Object, node: Object, ip: str) -> Sandbox:  # noqa: ARG002
        """Return a sandbox that only reports."""
        return ReportSandbox()
