"""The termination message of a container that ended."""

from pathlib import Path

from localcluster.agent.api import Object
from localcluster.agent.runtime import Exit

# pkg/kubelet/container/runtime.go (v1.36.2): MaxContainerTerminationMessageLogLength and -Lines.
_BYTES, _LINES = 2048, 80


def message(container: Object, ended: Exit) -> str:
    """Return the message of a container's status, from its output if its policy asks for it.

    getTerminationMessage in pkg/kubelet/kuberuntime/kuberuntime_container.go (v1.36.2). Containers
    here have no file for the message: their root is this machine's.
    """
    falls_back = container.get("terminationMessagePolicy") == "FallbackToLogsOnError"
    return shorten(ended.output) if falls_back and ended.code else ""


def shorten(output: str) -> str:
    """Return the last lines, as many as a kubelet keeps, and of these the last bytes."""
    lines = "".join(output.splitlines(keepends=True)[-_LINES:])
    return lines.encode()[-_BYTES:].decode(errors="ignore")


def last_words(log: Path, before: int) -> str:
    """Return the end of what was written to a log after its first bytes."""
    # Only the end matters, and a server may have printed much.
    with log.open("rb") as output:
        size = output.seek(0, 2)
        output.seek(max(before, size - 2 * _BYTES))
        return output.read().decode(errors="replace")
