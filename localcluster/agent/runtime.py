"""The interface of runtimes, and the one that only reports containers as running."""

import asyncio
from dataclasses import dataclass
from typing import Protocol

from localcluster.agent.api import Object


class StartError(Exception):
    """A container could not be started; the text is the reason."""


@dataclass(frozen=True)
class Exit:
    """How a container ended.

    Attributes:
        code: its exit code.
        reason: one word, if it isn't what the code says.
        output: the last that it printed.
    """

    code: int
    reason: str = ""
    output: str = ""


class Running(Protocol):
    """A container that was started."""

    async def wait(self) -> Exit:
        """Wait until it ends, and return how."""
        ...

    async def stop(self, grace: float) -> Exit:
        """Send SIGTERM, kill it after ``grace`` seconds, and return how it ended."""
        ...


class Sandbox(Protocol):
    """The environment of one pod's containers."""

    async def start(self, container: Object) -> Running:
        """Start a container.

        Raises:
            StartError: it cannot be started.
        """
        ...

    async def start_init(self, container: Object) -> Running:
        """Start an init container, which ends by itself.

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

    async def wait(self) -> Exit:
        """Never return."""
        await asyncio.Event().wait()
        raise AssertionError

    async def stop(self, grace: float) -> Exit:  # noqa: ARG002, of the protocol
        """Return success immediately."""
        return Exit(0)


class Done:
    """An init container that is reported as successful."""

    async def wait(self) -> Exit:
        """Return success immediately."""
        return Exit(0)

    async def stop(self, grace: float) -> Exit:  # noqa: ARG002, of the protocol
        """Return success immediately."""
        return Exit(0)


class ReportSandbox:
    """Reports each container started, and each init container successful."""

    async def start(self, container: Object) -> Running:  # noqa: ARG002, of the protocol
        """Report the container started."""
        return Reported()

    async def start_init(self, container: Object) -> Running:  # noqa: ARG002, of the protocol
        """Report success."""
        return Done()

    async def close(self) -> None:
        """Do nothing, since nothing ran."""


class ReportRuntime:
    """Starts no process."""

    def sandbox(self, pod: Object, node: Object, ip: str) -> Sandbox:  # noqa: ARG002, as above
        """Return a sandbox that only reports."""
        return ReportSandbox()
