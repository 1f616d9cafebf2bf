"""The processes of this machine, from /proc."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def processes_of(directory: Path) -> list[str]:
    """Return the command lines of processes with a directory in it or in their environment."""
    wanted = str(directory).encode()
    found = []
    for entry in Path("/proc").iterdir():
        # A process that has just ended, or is another user's, can't be read.
        with suppress(OSError):
            if entry.name.isdigit():
                line = (entry / "cmdline").read_bytes()
                if wanted in line or wanted in (entry / "environ").read_bytes():
                    found.append(line.replace(b"\0", b" ").decode(errors="replace"))
    return found


def is_running(pid: int) -> bool:
    """Whether a process runs. A zombie has ended, even if nobody has read its exit code."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
