"""The directory of a cluster's files, which one cluster uses at a time."""

import fcntl
import os
import shutil
from pathlib import Path

from localcluster.errors import LocalClusterError

_LOCK = "localcluster.lock"


def take(directory: Path) -> int:
    """Lock a directory, delete what an earlier cluster left in it, and return the open lock.

    Raises:
        LocalClusterError: the directory is in use or holds other files.
    """
    lock = directory / _LOCK
    if directory.exists() and not lock.exists() and any(directory.iterdir()):
        raise LocalClusterError(f"{directory} holds files that no local cluster made")
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise LocalClusterError(f"another local cluster runs in {directory}") from None
    for entry in directory.iterdir():
        if entry.name != _LOCK:
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    return handle
